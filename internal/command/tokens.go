package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/sqlc"
)

// TokenCmd is "token".
type TokenCmd struct {
	Create TokenCreateCmd `cmd:"" help:"Make an access token. Prints it, alone: it is shown this once."`
	List   TokenListCmd   `cmd:"" help:"List a tenant's access tokens, without their secrets."`
	Rotate TokenRotateCmd `cmd:"" help:"Make an access token's successor, with a new secret. Prints it, alone: it is shown this once."`
	Revoke TokenRevokeCmd `cmd:"" help:"End an access token, at once and everywhere."`
}

// TokenCreateCmd is "token create".
type TokenCreateCmd struct {
	Tenant   string        `required:"" help:"The tenant's handle."`
	Role     string        `required:"" enum:"admin,service,customer" help:"admin, service or customer."`
	Customer string        `help:"The customer (cus_…) that a token in the role customer is bound to."`
	Name     string        `help:"What the token is for."`
	Scope    []string      `help:"What to narrow it to, several with commas: read, invoices:write, orders:write …; all that the role may if left out."`
	Expires  time.Duration `help:"How long it is good, such as 720h; for ever if left out."`
}

// Run makes a token.
func (c TokenCreateCmd) Run(ctx context.Context, w *World) error {
	n := auth.NewToken{Name: c.Name, Role: domain.Role(strings.ToUpper(c.Role))}
	if c.Customer != "" {
		id, err := domain.ParseID[domain.CustomerID](c.Customer)
		if err != nil {
			return fmt.Errorf("--customer: %w", err)
		}
		n.CustomerID = &id
	}
	for _, scope := range c.Scope {
		n.Scopes = append(n.Scopes, domain.Scope(scope))
	}
	if _, err := domain.ParseScopes(nil, n.Scopes); err != nil {
		return fmt.Errorf("--scope: %w", err)
	}
	if c.Expires < 0 {
		return errors.New("--expires is a duration above zero")
	}
	if c.Expires > 0 {
		n.ExpiresAt = new(time.Now().Add(c.Expires))
	}
	return withTenant(ctx, w, c.Tenant, func(app *App, tenant *sqlc.OpsTenant) error {
		n.TenantID = tenant.ID
		token, _, err := app.Tokens.Create(ctx, n)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w.Stdout, token)
		return err
	})
}

// withTenant runs fn on the product, for a tenant.
func withTenant(ctx context.Context, w *World, handle string, fn func(app *App, tenant *sqlc.OpsTenant) error) error {
	return with(ctx, w, false, func(app *App) error {
		tenant, err := app.Invoicing.TenantByHandle(ctx, handle)
		if err != nil {
			return err
		}
		return fn(app, tenant)
	})
}

// TokenListCmd is "token list".
type TokenListCmd struct {
	Tenant string `required:"" help:"The tenant's handle."`
}

// Run lists tokens.
func (c TokenListCmd) Run(ctx context.Context, w *World) error {
	return withTenant(ctx, w, c.Tenant, func(app *App, tenant *sqlc.OpsTenant) error {
		tokens, err := app.Tokens.All(ctx, tenant.ID)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(w.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "ID\tTOKEN\tROLE\tCUSTOMER\tSCOPES\tNAME\tCREATED\tBY\tEXPIRES\tREVOKED\tREPLACES")
		for _, t := range tokens {
			customer, scopes, replaces := "", "all", "-"
			if t.CustomerID != nil {
				customer = t.CustomerID.String()
			}
			if t.Scopes != nil {
				scopes = domain.JoinScopes(t.Scopes, ",")
			}
			if t.Replaces != nil {
				replaces = t.Replaces.String()
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Hint, strings.ToLower(string(t.Role)),
				customer, scopes, t.Name, moment(&t.CreatedAt), t.CreatedBy, moment(t.ExpiresAt), moment(t.RevokedAt), replaces)
		}
		return table.Flush()
	})
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// TokenRotateCmd is "token rotate".
type TokenRotateCmd struct {
	Tenant string        `required:"" help:"The tenant's handle."`
	ID     string        `arg:"" help:"The token's id: tok_…"`
	Grace  time.Duration `default:"0s" help:"How long the old one goes on, such as 24h, up to 720h; it ends at once if left out."`
}

// Run rotates a token.
func (c TokenRotateCmd) Run(ctx context.Context, w *World) error {
	id, err := domain.ParseID[domain.TokenID](c.ID)
	if err != nil {
		return err
	}
	if c.Grace < 0 || c.Grace > 720*time.Hour {
		return errors.New("--grace is 0s to 720h")
	}
	return withTenant(ctx, w, c.Tenant, func(app *App, tenant *sqlc.OpsTenant) error {
		out, err := app.Tokens.Rotate(ctx, auth.Command(tenant.ID), auth.RotateAccessTokenInput{TokenID: id, GraceSeconds: new(int32(c.Grace / time.Second))})
		switch {
		case err != nil:
			return err
		case out.Value.Secret == nil:
			return fmt.Errorf("%s was rotated before, to %s, whose secret was shown then: rotate that one if it is lost", id, out.Value.ID)
		}
		_, err = fmt.Fprintln(w.Stdout, *out.Value.Secret)
		return err
	})
}

// TokenRevokeCmd is "token revoke".
type TokenRevokeCmd struct {
	Tenant string `required:"" help:"The tenant's handle."`
	ID     string `arg:"" help:"The token's id: tok_…"`
}

// Run revokes a token.
func (c TokenRevokeCmd) Run(ctx context.Context, w *World) error {
	id, err := domain.ParseID[domain.TokenID](c.ID)
	if err != nil {
		return err
	}
	return withTenant(ctx, w, c.Tenant, func(app *App, tenant *sqlc.OpsTenant) error {
		token, err := app.Tokens.Revoke(ctx, tenant.ID, id)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.Stdout, "%s is revoked since %s\n", token.ID, moment(token.RevokedAt))
		return err
	})
}
