package database_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/testdb"
	"countersign/sqlc"
)

// Every query is understood in the modes that a pooler needs as it is where statements are prepared: a
// type that is not registered would be sent as it is printed, or not at all.
func TestEveryQueryIsUnderstoodBehindAPooler(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	in := func(mode string) *pgxpool.Pool { return d.PoolAt(t, with(d.URL, "default_query_exec_mode", mode), 1) }
	prepared := in("cache_statement")
	behind := map[string]*pgxpool.Pool{"cache_describe": in("cache_describe"), "exec": in("exec")}
	queries := reflect.TypeFor[*sqlc.Queries]()
	asked := 0
	for i := range queries.NumMethod() {
		method := queries.Method(i)
		if method.Name == "WithTx" {
			continue
		}
		asked++
		for _, full := range []bool{false, true} {
			want := answerOf(t, prepared, method, full)
			if strings.Contains(want, "encode") {
				t.Errorf("%s: %s", method.Name, want)
			}
			for mode, pool := range behind {
				if got := answerOf(t, pool, method, full); got != want {
					t.Errorf("%s in the mode %s answers %s, prepared %s", method.Name, mode, got, want)
				}
			}
		}
	}
	if asked < 100 {
		t.Errorf("only %d queries", asked)
	}
}

// answerOf calls a query with made-up arguments, in a transaction that is rolled back, and tells the
// error's code. What is nullable is null, or with full is not.
func answerOf(t *testing.T, pool *pgxpool.Pool, method reflect.Method, full bool) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	arguments := []reflect.Value{reflect.ValueOf(sqlc.New(tx)), reflect.ValueOf(t.Context())}
	for i := 2; i < method.Type.NumIn(); i++ {
		value := reflect.New(method.Type.In(i)).Elem()
		makeUp(value, full)
		arguments = append(arguments, value)
	}
	results := method.Func.Call(arguments)
	err, _ = results[len(results)-1].Interface().(error)
	var said *pgconn.PgError
	switch {
	case err == nil:
		return "rows"
	case errors.As(err, &said):
		return said.Code
	}
	return err.Error()
}

// makeUp fills in a value of a query's arguments.
func makeUp(v reflect.Value, full bool) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)))
		return
	case []byte:
		v.SetBytes([]byte("12345678901234567890123456789012"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				makeUp(v.Field(i), full)
			}
		}
	case reflect.Pointer:
		if full {
			v.Set(reflect.New(v.Type().Elem()))
			makeUp(v.Elem(), full)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("12345678901234567890123456789012"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		makeUp(v.Index(0), full)
	case reflect.String:
		v.SetString("EUR")
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	}
}
