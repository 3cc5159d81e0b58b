package database_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

var quiet = slog.New(slog.DiscardHandler)

// errUndo ends a transaction that was only tried.
var errUndo = errors.New("undo")

// migrateVariable turns the test binary into a replica that migrates the database at the URL it
// holds, prints how many migrations it ran, and ends.
const migrateVariable = "COUNTERSIGN_TEST_MIGRATE"

func TestMain(m *testing.M) {
	if target := os.Getenv(migrateVariable); target != "" {
		applied, err := migrate(context.Background(), target)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(applied)
		os.Exit(0)
	}
	os.Exit(testdb.Main(m))
}

// migrate is a replica's start: it migrates through the URL that it logs in with.
func migrate(ctx context.Context, target string) (int, error) {
	u, err := url.Parse(target)
	if err != nil {
		return 0, err
	}
	return database.Migrate(ctx, target, u.User.Username(), quiet)
}

// login is a role that can log in to a test's database.
type login struct{ name, url string }

// secret is the password of every login of the tests; no error may tell it.
const secret = "quiet-otter-27"

// newLogin makes a login with the given attributes of CREATE ROLE, for the length of the test.
func newLogin(t *testing.T, d *testdb.DB, attributes string) login {
	t.Helper()
	name := "login_" + d.Name
	d.Exec(t, "CREATE ROLE "+name+" LOGIN PASSWORD '"+secret+"' "+attributes)
	t.Cleanup(func() {
		d.Exec(t, "REASSIGN OWNED BY "+name+" TO CURRENT_USER") // others' tables refer to what it owns
		d.Exec(t, "DROP OWNED BY "+name)
		d.Exec(t, "DROP ROLE "+name)
	})
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, secret)
	return login{name, u.String()}
}

// with is a URL with another parameter: a setting of the session, or one of the library's own.
func with(target, name, value string) string {
	return target + "&" + url.Values{name: {value}}.Encode()
}

// code is the SQLSTATE of a database error, "" of any other.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// issue makes a customer and a series A, and returns the series' first invoice.
func issue(t *testing.T, s *invoicing.Service, caller auth.Caller) *sqlc.Invoice {
	t.Helper()
	customer, err := s.CreateCustomer(t.Context(), caller, invoicing.CreateCustomerInput{Name: "Bishop & Knight", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	series, err := s.CreateSeries(t.Context(), caller, invoicing.CreateInvoiceSeriesInput{Code: "A"})
	if err != nil {
		t.Fatal(err)
	}
	invoice, err := s.Allocate(t.Context(), caller, invoicing.AllocateInvoiceInput{
		SeriesID: series.Value.ID, CustomerID: customer.Value.ID, Currency: "EUR",
		Lines: []domain.InvoiceLineInput{{Description: "A month of chess", Quantity: 1, UnitAmountMinor: 900}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return invoice.Value
}
