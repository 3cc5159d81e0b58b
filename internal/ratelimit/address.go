package ratelimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// Address is who sends a request, as far as can be known: the peer; or, where that is a proxy of
// ours, the last address in X-Forwarded-For that no proxy of ours has. What stands before it the
// client may have made up. Of an IPv6 address it is the network of 64 bits: whoever has one address
// of it has them all.
func Address(r *http.Request, proxies []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := peer.Addr().Unmap()
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && ours(address, proxies); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		address = next.Unmap()
	}
	if address.Is6() {
		network, _ := address.WithZone("").Prefix(64) // of an IPv6 address never fails
		return network.String()
	}
	return address.String()
}

func ours(address netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(address) {
			return true
		}
	}
	return false
}
