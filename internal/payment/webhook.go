package payment

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"countersign/internal/domain"
)

// maxWebhookText bounds each text of a webhook.
const maxWebhookText = 255

// Event verifies a webhook of the simulated provider, which follows Standard Webhooks: an HMAC over
// id, time and body under any of the secrets, and a time at most 300 seconds off.
func (p *Simulated) Event(header http.Header, body []byte) (Event, error) {
	if !p.signed(header, body) {
		return Event{}, ErrBadWebhook
	}
	var in struct {
		Type        domain.FactKind     `json:"type"`
		PaymentID   string              `json:"paymentId"`
		Reference   string              `json:"reference"`
		AmountMinor json.Number         `json:"amountMinor"`
		Currency    domain.CurrencyCode `json:"currency"`
		RefundID    string              `json:"refundId"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Event{}, fmt.Errorf("%w: the body is not JSON of its form", ErrBadWebhook)
	}
	e := Event{ID: header.Get(standardwebhooks.HeaderWebhookID), Reference: in.Reference, Fact: domain.Fact{
		Kind: in.Type, PaymentID: in.PaymentID, RefundID: in.RefundID, Amount: domain.Money{Currency: in.Currency},
	}}
	if in.AmountMinor != "" {
		amount, err := domain.ParseInt64(in.AmountMinor)
		if err != nil {
			return Event{}, fmt.Errorf("%w: amountMinor is no whole number", ErrBadWebhook)
		}
		e.Fact.Amount.AmountMinor = domain.Cents(amount)
	}
	for _, text := range []string{e.ID, e.Reference, string(in.Type), in.PaymentID, in.RefundID, string(in.Currency)} {
		if _, err := domain.ParseText(text); err != nil || len(text) > maxWebhookText {
			return Event{}, fmt.Errorf("%w: a text is too long or no text", ErrBadWebhook)
		}
	}
	switch {
	case in.Type == "" || in.PaymentID == "" || in.Reference == "":
		return Event{}, fmt.Errorf("%w: type, paymentId and reference are required", ErrBadWebhook)
	case in.Type == domain.FactPaid && in.AmountMinor == "":
		return Event{}, fmt.Errorf("%w: a payment has an amountMinor", ErrBadWebhook)
	case in.Type == domain.FactRefunded && in.RefundID == "":
		return Event{}, fmt.Errorf("%w: a refund has a refundId", ErrBadWebhook)
	case in.Type == domain.FactRefunded && e.Fact.Amount.AmountMinor <= 0, e.Fact.Amount.AmountMinor < 0:
		return Event{}, fmt.Errorf("%w: the amount is not positive", ErrBadWebhook)
	}
	return e, nil
}

// signed says whether any of the secrets has signed the webhook: during a rotation there are two.
func (p *Simulated) signed(header http.Header, body []byte) bool {
	for _, secret := range p.secrets {
		webhook, err := newWebhook(secret)
		if err == nil && webhook.Verify(body, header) == nil {
			return true
		}
	}
	return false
}

// newWebhook takes a secret of the standard's form, whsec_ and base 64, or any other text as it is.
func newWebhook(secret string) (*standardwebhooks.Webhook, error) {
	if strings.HasPrefix(secret, "whsec_") {
		return standardwebhooks.NewWebhook(secret)
	}
	return standardwebhooks.NewWebhookRaw([]byte(secret))
}

// CheckSecrets refuses secrets that could not sign.
func CheckSecrets(secrets []string) error {
	for _, secret := range secrets {
		if _, err := newWebhook(secret); err != nil || len(secret) < 16 {
			return fmt.Errorf("a webhook secret is at least 16 characters, or whsec_ and base 64")
		}
	}
	return nil
}
