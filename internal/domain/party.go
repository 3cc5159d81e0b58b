package domain

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Address is where a party is, as an invoice prints it.
type Address struct {
	Line1      string  `json:"line1"`
	Line2      *string `json:"line2,omitempty"`
	PostalCode *string `json:"postalCode,omitempty"`
	City       *string `json:"city,omitempty"`
	Region     *string `json:"region,omitempty"`
	Country    string  `json:"country"` // ISO 3166-1, two letters
}

// TaxID is a number by which a tax authority knows a party.
type TaxID struct {
	Scheme string `json:"scheme"` // whose number it is: VAT, GSTIN, EIN
	Value  string `json:"value"`
}

// TaxIDs are a party's, in the order in which they were given, as one column has them.
type TaxIDs []TaxID

// Value is the address as JSON, so that it is understood where the database tells no types.
func (a Address) Value() (driver.Value, error) { return jsonValue(a) }

// Scan reads JSON.
func (a *Address) Scan(src any) error { return scanJSON(src, a) }

// Value is the list as JSON; it is never null.
func (ids TaxIDs) Value() (driver.Value, error) {
	if ids == nil {
		return "[]", nil
	}
	return jsonValue([]TaxID(ids))
}

// Scan reads JSON.
func (ids *TaxIDs) Scan(src any) error { return scanJSON(src, (*[]TaxID)(ids)) }

func jsonValue(v any) (driver.Value, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func scanJSON(src, into any) error {
	switch text := src.(type) {
	case string:
		return json.Unmarshal([]byte(text), into)
	case []byte:
		return json.Unmarshal(text, into)
	}
	return fmt.Errorf("json: cannot read %T", src)
}

var (
	countrySyntax = regexp.MustCompile(`^[A-Z]{2}$`)
	schemeSyntax  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,19}$`)
)

// maxTaxIDs bounds the tax ids of a party.
const maxTaxIDs = 10

// Check refuses an address that cannot be printed; path is where it stands in the input.
func (a Address) Check(path []string) error {
	at := func(field string) []string { return append(path[:len(path):len(path)], field) }
	if err := CheckText(at("line1"), a.Line1, 200); err != nil {
		return err
	}
	for _, optional := range []struct {
		field string
		value *string
	}{{"line2", a.Line2}, {"postalCode", a.PostalCode}, {"city", a.City}, {"region", a.Region}} {
		if optional.value != nil {
			if err := CheckText(at(optional.field), *optional.value, 200); err != nil {
				return err
			}
		}
	}
	if !countrySyntax.MatchString(a.Country) {
		return BadInputAt(at("country"), "a country is two capital letters of ISO 3166-1, such as DE")
	}
	return nil
}

// CheckTaxIDs refuses tax ids that nobody could print.
func CheckTaxIDs(path []string, ids []TaxID) error {
	if len(ids) > maxTaxIDs {
		return BadInputAt(path, "at most %d tax ids", maxTaxIDs)
	}
	for i, id := range ids {
		at := func(field string) []string { return append(path[:len(path):len(path)], strconv.Itoa(i), field) }
		if !schemeSyntax.MatchString(id.Scheme) {
			return BadInputAt(at("scheme"), "a scheme is 1 to 20 capital letters, digits or _, such as VAT")
		}
		if err := CheckText(at("value"), id.Value, 50); err != nil {
			return err
		}
	}
	return nil
}

// CheckEmail refuses what is no e-mail address.
func CheckEmail(path []string, s string) error {
	local, host, _ := strings.Cut(s, "@")
	if local == "" || host == "" || len(s) > 254 || strings.ContainsAny(s, " \t\r\n") {
		return BadInputAt(path, "not an e-mail address")
	}
	return nil
}
