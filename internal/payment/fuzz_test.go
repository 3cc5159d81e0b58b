package payment_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/payment"
)

// FuzzWebhookSignature: only what carries the signature of id, time and body under the secret, at a
// time that is near, is a webhook.
func FuzzWebhookSignature(f *testing.F) {
	for _, signature := range []string{"", "v1,", "v1,AAAA", "v2,AAAA v1,", ",", "v1", " "} {
		f.Add("evt_1", int64(0), "", signature, body, false)
	}
	f.Add("evt_1", int64(0), "", "v1,AAAA ", body, true)
	f.Add("", int64(299), "", "", body, true)
	f.Add("evt_1", int64(-301), "", "", body, true)
	f.Add("evt_1", int64(0), "1e9", "", "{}", false)
	f.Add("evt.1", int64(0), "-1", "v1a,x", "\xff", true)
	f.Fuzz(func(t *testing.T, id string, off int64, at, signature, body string, sign bool) {
		off %= 1000
		if at == "" {
			at = strconv.FormatInt(time.Now().Unix()+off, 10)
		}
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		right := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if sign {
			signature += " " + right
		}
		_, err := provider(secret).Event(http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}, []byte(body))
		if err != nil && !errors.Is(err, payment.ErrBadWebhook) {
			t.Fatalf("refused with %v", err)
		}
		unix, bad := strconv.ParseInt(at, 10, 64)
		far := bad != nil || time.Since(time.Unix(unix, 0)).Abs() > 302*time.Second
		if err == nil && (far || !slices.Contains(strings.Split(signature, " "), right)) {
			t.Fatalf("taken: id %q at %q, signed %q, body %q", id, at, signature, body)
		}
	})
}

// FuzzWebhookBody: a signed body is a fact that the ordering can judge, or no webhook.
func FuzzWebhookBody(f *testing.F) {
	f.Add("evt_1", body)
	f.Add("evt_1", `{"type":"payment.refunded","paymentId":"p1","reference":"ord_1","amountMinor":-1,"currency":"EUR","refundId":"r"}`)
	f.Add("evt_1", `{"type":"payment.refunded","paymentId":"p1","reference":"ord_1","amountMinor":1e3,"currency":"eur"}`)
	f.Add("evt_1", `{"type":"x","paymentId":"\u0000","reference":"ord_1","amountMinor":"9223372036854775808"}`)
	f.Add("evt_1", `null`)
	f.Add("evt_1", `{"type":1}`)
	f.Add("\x00", strings.Replace(body, "ord_1", strings.Repeat("x", 256), 1))
	f.Fuzz(func(t *testing.T, id, body string) {
		e, err := provider(secret).Event(signed(t, secret, id, body, time.Now()), []byte(body))
		if errors.Is(err, payment.ErrBadWebhook) {
			return
		}
		if err != nil {
			t.Fatalf("refused with %v", err)
		}
		if e.ID == "" || e.Reference == "" || e.Fact.PaymentID == "" || e.Fact.Kind == "" || e.Fact.Amount.AmountMinor < 0 {
			t.Fatalf("taken: %+v", e)
		}
		if e.Fact.Kind == domain.FactRefunded && (e.Fact.RefundID == "" || e.Fact.Amount.AmountMinor == 0) {
			t.Fatalf("a refund of nothing was taken: %+v", e)
		}
		for _, text := range []string{e.ID, e.Reference, string(e.Fact.Kind), e.Fact.PaymentID, e.Fact.RefundID, string(e.Fact.Amount.Currency)} {
			if _, err := domain.ParseText(text); err != nil || len(text) > 255 {
				t.Fatalf("taken with the text %q", text)
			}
		}
	})
}
