package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"countersign/internal/domain"
	"countersign/internal/join"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// maxJWT is the longest JWT that is looked at, in bytes.
const maxJWT = 16 << 10

// Algorithms are the signatures that a JWT may have. None of them is symmetric: who can verify one
// must not be able to make one.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// JWTSettings say whose JWTs are accepted, and what their claims mean. A claim's name may be a path
// of objects: realm_access.roles.
type JWTSettings struct {
	Issuer, Audience string
	JWKSURL          string
	Algorithms       []string
	Skew             time.Duration // by which clocks may differ
	Refresh          time.Duration // how often the keys are fetched
	TenantClaim      string        // the tenant's id (ten_…) or handle
	CustomerClaim    string        // the customer (cus_…) of the role customer
	RolesClaim       string        // admin, service or customer, alone or in a list
	ScopeClaim       string        // scopes with spaces between them, or a list; "": not looked at
}

// JWTs recognises the callers that an issuer vouches for.
type JWTs struct {
	db      *txn.DB
	keys    *keySet
	parser  *jwt.Parser
	set     JWTSettings
	lookups *join.Group[struct{}, claimed, *sqlc.EveryClaimedTenantRow] // all in one line
}

// NewJWTs makes JWTs of settings that the configuration has checked. It fetches the keys in the
// background until ctx ends.
func NewJWTs(ctx context.Context, db *txn.DB, s JWTSettings, logger *slog.Logger) *JWTs {
	j := &JWTs{db: db, keys: newKeySet(s.JWKSURL, logger), set: s}
	j.parser = jwt.NewParser(
		jwt.WithValidMethods(s.Algorithms), jwt.WithIssuer(s.Issuer), jwt.WithAudience(s.Audience), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(s.Skew), jwt.WithTimeFunc(func() time.Time { return db.Clock() }), jwt.WithStrictDecoding(),
	)
	j.lookups = join.New(join.Limits{Batch: 500, Queue: 10_000, Timeout: 5 * time.Second}, j.lookUp)
	j.keys.refresh(ctx, s.Refresh)
	return j
}

// Waiting is how many look-ups wait for the next statement.
func (j *JWTs) Waiting() int { return j.lookups.Waiting() }

// Authenticate says who presents a JWT: UNAUTHENTICATED if it is not good, for whatever reason, the
// same as for a token; UNAVAILABLE while no key of the issuer is known.
func (j *JWTs) Authenticate(ctx context.Context, token string) (Caller, error) {
	if len(token) > maxJWT {
		return Caller{}, notValid(errors.New("it is too long"))
	}
	claims := jwt.MapClaims{}
	_, err := j.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		if _, critical := t.Header["crit"]; critical || kid == "" || len(kid) > maxKeyID {
			return nil, errors.New("its header has no kid, or demands what is not understood")
		}
		return j.keys.key(ctx, t)
	})
	switch {
	case errors.Is(err, errNoKeys):
		return Caller{}, domain.Refuse(domain.CodeUnavailable, nil, "the keys of the issuer cannot be reached: ask again later").Because(err)
	case err != nil:
		return Caller{}, notValid(err)
	}
	return j.caller(ctx, claims)
}

// notValid is the answer to every JWT that is not good; the log is told why.
func notValid(why error) error {
	return domain.Refuse(errNoToken.Code, nil, "%s", errNoToken.Message).Because(why)
}

// caller is who the claims say. The tenant, and the customer in it, are looked up: what an issuer
// says of them is no proof that they exist.
func (j *JWTs) caller(ctx context.Context, claims jwt.MapClaims) (Caller, error) {
	c, asked, err := j.set.read(claims)
	if err != nil {
		return Caller{}, notValid(err)
	}
	tenant, err := j.lookups.Do(ctx, struct{}{}, asked)
	switch {
	case errors.Is(err, join.ErrFull), err != nil && ctx.Err() != nil: // full, or the caller is gone
		return Caller{}, domain.Busy().Because(err)
	case err != nil:
		return Caller{}, err
	case tenant == nil:
		return Caller{}, notValid(errors.New("its tenant does not exist"))
	case c.Role == domain.RoleCustomer && !tenant.HasCustomer:
		return Caller{}, notValid(errors.New("its customer is none of its tenant's"))
	}
	c.TenantID = tenant.ID
	return c, nil
}

// lookUp is the one statement of requests that arrived together.
func (j *JWTs) lookUp(ctx context.Context, _ struct{}, requests []claimed) ([]*sqlc.EveryClaimedTenantRow, error) {
	arg := sqlc.EveryClaimedTenantParams{}
	for _, r := range requests {
		arg.TenantIds = append(arg.TenantIds, domain.UUID(r.tenant))
		arg.Handles = append(arg.Handles, r.handle)
		arg.CustomerIds = append(arg.CustomerIds, domain.UUID(r.customer))
	}
	rows, err := txn.Read(ctx, j.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.EveryClaimedTenantRow, error) {
		return q.EveryClaimedTenant(ctx, arg)
	})
	if err != nil {
		return nil, err
	}
	found := make([]*sqlc.EveryClaimedTenantRow, len(requests))
	for _, row := range rows {
		found[row.Place-1] = row
	}
	return found, nil
}
