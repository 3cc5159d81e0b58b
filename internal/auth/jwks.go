package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// Bounds of fetching the issuer's keys.
const (
	maxKeySet    = 512 << 10        // bytes of an answer
	fetchTimeout = 5 * time.Second  // of one fetch
	maxKeyWait   = 2 * time.Second  // that a request waits for one
	refetchEvery = 10 * time.Second // fetches because of an unknown key, at most one in this time
	maxKeyID     = 200              // characters of a kid
)

// errNoKeys says that the issuer's keys are not known.
var errNoKeys = errors.New("the keys of the issuer are not known")

// keySet are the issuer's keys, as its JWKS last had them. They are fetched in the background, and
// once more, rarely, where a token names one that is not known: the issuer may have rotated. A fetch
// that fails leaves the known ones; a set that drops a key ends it.
type keySet struct {
	url     string
	client  *http.Client
	logger  *slog.Logger
	known   atomic.Pointer[keyfunc.Keyfunc]
	unasked *rate.Limiter // fetches that nobody has scheduled

	mu     sync.Mutex
	flight chan struct{} // closed when the fetch under way has ended; nil: none is
}

func newKeySet(url string, logger *slog.Logger) *keySet {
	return &keySet{
		url: url, logger: logger, unasked: rate.NewLimiter(rate.Every(refetchEvery), 1),
		client: &http.Client{
			Timeout: fetchTimeout,
			// A redirect would be followed to wherever its answer says.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// refresh fetches the keys at once, and then in the background at intervals, until ctx ends.
func (k *keySet) refresh(ctx context.Context, every time.Duration) {
	k.fetch() // begun before the first request can miss a key
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				<-k.fetch()
			}
		}
	}()
}

// key is what verifies a token.
func (k *keySet) key(ctx context.Context, token *jwt.Token) (any, error) {
	key, err := k.find(token)
	if !errors.Is(err, jwkset.ErrKeyNotFound) && !errors.Is(err, errNoKeys) {
		return key, err
	}
	flight := k.missed()
	if flight == nil { // it was just fetched
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, maxKeyWait)
	defer cancel()
	select {
	case <-flight:
	case <-wait.Done():
	}
	return k.find(token)
}

func (k *keySet) find(token *jwt.Token) (any, error) {
	known := k.known.Load()
	if known == nil {
		return nil, errNoKeys
	}
	return (*known).Keyfunc(token)
}

// missed is the fetch that may bring a key that is not known: the one under way, or a new one if
// there has been none for a while; else nil. So a storm of unknown keys costs the issuer nothing.
func (k *keySet) missed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight == nil && !k.unasked.Allow() {
		return nil
	}
	return k.begin()
}

// fetch is the fetch under way, or a new one.
func (k *keySet) fetch() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begin()
}

func (k *keySet) begin() <-chan struct{} {
	if k.flight != nil {
		return k.flight
	}
	ended := make(chan struct{})
	k.flight = ended
	go func() {
		if set, err := k.load(); err != nil {
			k.logger.Warn("the issuer's keys could not be fetched", slog.Any("error", err))
		} else {
			k.known.Store(&set)
		}
		k.mu.Lock()
		k.flight = nil
		k.mu.Unlock()
		close(ended)
	}()
	return ended
}

// load reads the set. It belongs to no request, so it has a deadline of its own.
func (k *keySet) load() (keyfunc.Keyfunc, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	answer, err := k.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the JWKS is answered %s", answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxKeySet+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxKeySet {
		return nil, fmt.Errorf("the JWKS is larger than %d bytes", maxKeySet)
	}
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return nil, errors.New("the JWKS is no JSON object with keys")
	}
	return keysOf(*set.Keys)
}

// keysOf are the keys of a set that can verify a signature. What is of an unknown kind, for
// encryption, without an id or no public key is left out: it must not take the others with it.
func keysOf(raw []json.RawMessage) (keyfunc.Keyfunc, error) {
	storage := jwkset.NewMemoryStorage()
	for _, one := range raw {
		jwk, err := jwkset.NewJWKFromRawJSON(one, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil || jwk.Marshal().KID == "" || jwk.Marshal().KTY == jwkset.KtyOct {
			continue
		}
		if err := storage.KeyWrite(context.Background(), jwk); err != nil {
			return nil, err
		}
	}
	return keyfunc.New(keyfunc.Options{Storage: storage, UseWhitelist: []jwkset.USE{"", jwkset.UseSig}})
}
