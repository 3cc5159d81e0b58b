package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"countersign/internal/domain"
)

// A token is "cst_" and 64 characters of lower-case base 32: the tenant's id (16 bytes), a random
// secret (20 bytes) and a CRC-32 of both. The prefix can be scanned for in code and logs, the
// checksum refuses a typo without a look-up, and the tenant says where to look.
const tokenPrefix = "cst_"

const (
	tenantBytes = 16
	secretBytes = 20
	sumBytes    = 4
)

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newToken makes a token of a tenant. It is shown once; only its hash is kept.
func newToken(tenant domain.TenantID) string {
	raw := make([]byte, tenantBytes+secretBytes, tenantBytes+secretBytes+sumBytes)
	copy(raw, tenant[:])
	_, _ = rand.Read(raw[tenantBytes:]) // never fails
	raw = binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw))
	return tokenPrefix + encoding.EncodeToString(raw)
}

// parseToken checks a token's form and checksum, and returns its tenant.
func parseToken(token string) (tenant domain.TenantID, ok bool) {
	const size = tenantBytes + secretBytes + sumBytes
	tail, found := strings.CutPrefix(token, tokenPrefix)
	raw, err := encoding.DecodeString(tail)
	if !found || err != nil || len(raw) != size || len(tail) != encoding.EncodedLen(size) { // the decoder skips line breaks
		return tenant, false
	}
	body, sum := raw[:tenantBytes+secretBytes], raw[tenantBytes+secretBytes:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return tenant, false
	}
	return domain.TenantID(body[:tenantBytes]), true
}

// hashToken is what is kept of a token. The secret has 160 random bits, so a plain hash cannot be
// reversed, and a look-up by hash takes as long for a wrong token as for a right one.
func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// hint is how a list shows a token: its start and its last four characters.
func hint(token string) string {
	return token[:len(tokenPrefix)+4] + "…" + token[len(token)-4:]
}
