package ordering

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"countersign/internal/payment"
)

// maxWebhook is the largest webhook, in bytes.
const maxWebhook = 64 << 10

// Webhook takes the provider's webhooks over HTTP: 204 for what was taken in, replays and surprises
// included; 400 for what is not the provider's; 503 for what it is to send again.
func Webhook(s *Service, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a webhook is a POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, "the webhook is too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the webhook could not be read", http.StatusBadRequest)
			return
		}
		event, err := s.provider.Event(r.Header, body)
		if err != nil { // the reason is for the log: who is not the provider learns nothing
			logger.WarnContext(r.Context(), "webhook refused", slog.Any("error", err))
			http.Error(w, payment.ErrBadWebhook.Error(), http.StatusBadRequest)
			return
		}
		if err := s.Receive(r.Context(), event); err != nil {
			logger.ErrorContext(r.Context(), "webhook not taken in", slog.String("event", event.ID), slog.Any("error", err))
			http.Error(w, "not taken in: send it again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
