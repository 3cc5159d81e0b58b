package payment_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"countersign/internal/domain"
	"countersign/internal/payment"
)

const (
	secret  = "a secret of the shop"
	encoded = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body    = `{"type":"payment.paid","paymentId":"p1","reference":"ord_1","amountMinor":10000,"currency":"EUR"}`
)

// signed are the headers of a webhook that was sent at a moment.
func signed(t *testing.T, secret, id, body string, at time.Time) http.Header {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		webhook, err = standardwebhooks.NewWebhook(secret)
	}
	if err != nil {
		t.Fatal(err)
	}
	signature, err := webhook.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature}}
}

func provider(secrets ...string) *payment.Simulated { return payment.NewSimulated(nil, 0, secrets) }

// What the provider has signed is read as it was meant, under a secret of either form.
func TestAWebhookOfTheProviders(t *testing.T) {
	t.Parallel()
	want := payment.Event{ID: "evt_1", Reference: "ord_1", Fact: domain.Fact{
		Kind: domain.FactPaid, PaymentID: "p1", Amount: domain.Money{AmountMinor: 10000, Currency: "EUR"},
	}}
	for _, key := range []string{secret, encoded} {
		got, err := provider(key).Event(signed(t, key, "evt_1", body, time.Now()), []byte(body))
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", key, got, err, want)
		}
	}
}

// While secrets are rotated both are good; before and after, one is.
func TestSecretsAreRotated(t *testing.T) {
	t.Parallel()
	by := map[string]http.Header{secret: signed(t, secret, "evt_1", body, time.Now()), encoded: signed(t, encoded, "evt_1", body, time.Now())}
	for _, c := range []struct {
		secrets        []string
		first, rotated bool
	}{
		{[]string{secret}, true, false}, {[]string{secret, encoded}, true, true}, {[]string{encoded, secret}, true, true},
		{[]string{encoded}, false, true}, {nil, false, false},
	} {
		for key, want := range map[string]bool{secret: c.first, encoded: c.rotated} {
			if _, err := provider(c.secrets...).Event(by[key], []byte(body)); (err == nil) != want {
				t.Errorf("secrets %q, signed with %q: %v", c.secrets, key, err)
			}
		}
	}
	// The provider may sign with both at once.
	both := signed(t, "the one before the last", "evt_1", body, time.Now())
	both.Set("Webhook-Signature", both.Get("Webhook-Signature")+" "+by[secret].Get("Webhook-Signature"))
	both.Set("Webhook-Timestamp", by[secret].Get("Webhook-Timestamp"))
	if _, err := provider(secret).Event(both, []byte(body)); err != nil {
		t.Errorf("two signatures, one good: %v", err)
	}
}

// What the provider has not signed like this, here and now is refused, and moves nobody's money.
func TestAWebhookThatIsNotToBeTrusted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, change := range map[string]func(http.Header) (http.Header, string){
		"another's signature": func(http.Header) (http.Header, string) {
			return signed(t, "somebody else's one", "evt_1", body, now), body
		},
		"an edited body": func(h http.Header) (http.Header, string) { return h, strings.Replace(body, "10000", "10", 1) },
		"a space more":   func(h http.Header) (http.Header, string) { return h, body + " " },
		"another id":     func(h http.Header) (http.Header, string) { h.Set("Webhook-Id", "evt_2"); return h, body },
		"a newer time": func(h http.Header) (http.Header, string) {
			h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix()+1, 10))
			return h, body
		},
		"a time that is none": func(h http.Header) (http.Header, string) { h.Set("Webhook-Timestamp", "now"); return h, body },
		"no id":               func(h http.Header) (http.Header, string) { h.Del("Webhook-Id"); return h, body },
		"no time":             func(h http.Header) (http.Header, string) { h.Del("Webhook-Timestamp"); return h, body },
		"no signature":        func(h http.Header) (http.Header, string) { h.Del("Webhook-Signature"); return h, body },
		"no headers":          func(http.Header) (http.Header, string) { return http.Header{}, body },
		"a signature of junk": func(h http.Header) (http.Header, string) { h.Set("Webhook-Signature", "v1"); return h, body },
		"another version's": func(h http.Header) (http.Header, string) {
			h.Set("Webhook-Signature", "v2"+h.Get("Webhook-Signature")[2:])
			return h, body
		},
		"301 seconds old": func(http.Header) (http.Header, string) {
			return signed(t, secret, "evt_1", body, now.Add(-301*time.Second)), body
		},
		"301 seconds too soon": func(http.Header) (http.Header, string) {
			return signed(t, secret, "evt_1", body, now.Add(303*time.Second)), body
		},
	} {
		h, sent := change(signed(t, secret, "evt_1", body, now))
		if _, err := provider(secret).Event(h, []byte(sent)); !errors.Is(err, payment.ErrBadWebhook) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, off := range []time.Duration{-298 * time.Second, 298 * time.Second} {
		if _, err := provider(secret).Event(signed(t, secret, "evt_1", body, now.Add(off)), []byte(body)); err != nil {
			t.Errorf("%v off: %v", off, err)
		}
	}
}

// A body that the provider has signed and that makes no sense is refused like any other: it can be
// neither kept nor applied.
func TestASignedBodyThatMakesNoSense(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	refund := `{"type":"payment.refunded","paymentId":"p1","reference":"ord_1","refundId":"r1","currency":"EUR","amountMinor":`
	for sent, good := range map[string]bool{
		body: true,
		``:   false, `null`: false, `[]`: false, `{}`: false, `"paid"`: false, `{"type":`: false, body + body: false, "\xff": false,
		strings.Replace(body, "10000", "1e4", 1):                    false,
		strings.Replace(body, "10000", "100.5", 1):                  false,
		strings.Replace(body, "10000", "-1", 1):                     false,
		strings.Replace(body, "10000", "9223372036854775807", 1):    true,
		strings.Replace(body, "10000", `"9223372036854775807"`, 1):  true,
		strings.Replace(body, "10000", "9223372036854775808", 1):    false,
		strings.Replace(body, "10000", strings.Repeat("9", 400), 1): false,
		strings.Replace(body, "10000", `{}`, 1):                     false,
		strings.Replace(body, `"p1"`, `""`, 1):                      false,
		strings.Replace(body, `"p1"`, `7`, 1):                       false,
		strings.Replace(body, `"ord_1"`, `""`, 1):                   false,
		strings.Replace(body, `"payment.paid"`, `""`, 1):            false,
		strings.Replace(body, `"ord_1"`, `"`+long+`"`, 1):           false,
		strings.Replace(body, `"EUR"`, `"`+long+`"`, 1):             false,
		strings.Replace(body, `"p1"`, `"p\u0000"`, 1):               false,
		strings.Replace(body, `"payment.paid"`, `"payment.new"`, 1): true, // kept, for a person
		refund + `1}`:    true,
		refund + `0}`:    false,
		refund + `-1}`:   false,
		refund + `null}`: false,
		strings.Replace(refund, `"r1"`, `""`, 1) + `1}`:           false,
		strings.Replace(refund, `"refundId":"r1",`, ``, 1) + `1}`: false,
	} {
		_, err := provider(secret).Event(signed(t, secret, "evt_1", sent, time.Now()), []byte(sent))
		if (err == nil) != good || err != nil && !errors.Is(err, payment.ErrBadWebhook) {
			t.Errorf("%.120s: got %v, want good %v", sent, err, good)
		}
	}
	if _, err := provider(secret).Event(signed(t, secret, long, body, time.Now()), []byte(body)); !errors.Is(err, payment.ErrBadWebhook) {
		t.Errorf("an id of 256 characters: %v", err)
	}
}

// An operator learns at the start that a secret could not sign.
func TestCheckSecrets(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{secret: true, encoded: true, "": false, "short": false, "whsec_": false, "whsec_this is no base 64": false} {
		if err := payment.CheckSecrets([]string{secret, text}); (err == nil) != good {
			t.Errorf("%q: %v, want good %v", text, err, good)
		}
	}
	if err := payment.CheckSecrets(nil); err != nil {
		t.Errorf("no secrets: %v", err)
	}
}
