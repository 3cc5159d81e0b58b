package domain

// PrintsLike says whether a number of one series could be printed like a number of another, on
// whatever days: A with 11 and A1 with 1 under {CODE}{N}. It compares what can stand at each
// place, so it may take two for alike that a calendar keeps apart (a literal 13 beside {MM}), and
// never the other way round.
func (r SeriesRule) PrintsLike(other SeriesRule) bool {
	mine, others := r.shape(), other.shape()
	for digits := mine.width; digits <= mine.room; digits++ {
		of := digits + mine.fixed() - others.fixed() // the other's digits where both have one length
		if of >= others.width && of <= others.room && overlap(mine.places(digits), others.places(of)) {
			return true
		}
	}
	return false
}

// shape is what can stand before and after the number, place by place, and how many digits the
// number has.
type shape struct {
	before, after []charset
	width, room   int
}

func (s shape) fixed() int { return len(s.before) + len(s.after) }

// places are the whole printed number's, where the number itself has so many digits.
func (s shape) places(digits int) []charset {
	places := append([]charset(nil), s.before...)
	for i := range digits {
		if i == 0 && digits > s.width { // what is not padded begins with no zero
			places = append(places, "123456789")
			continue
		}
		places = append(places, anyDigit)
	}
	return append(places, s.after...)
}

// charset holds the characters that can stand at a place.
type charset string

const anyDigit charset = "0123456789"

var datePlaces = map[string][]charset{
	"{YYYY}": {anyDigit, anyDigit, anyDigit, anyDigit},
	"{YY}":   {anyDigit, anyDigit},
	"{MM}":   {"01", anyDigit},
	"{DD}":   {"0123", anyDigit},
}

func (r SeriesRule) shape() shape {
	s := shape{room: r.room()}
	out := &s.before
	for _, part := range r.Format.parts() {
		switch {
		case numberPart.MatchString(part):
			s.width, out = int(numberWidth(part)), &s.after
		case part == "{CODE}":
			*out = append(*out, literally(r.Code)...)
		case part == "{FY}":
			*out = append(*out, datePlaces["{YYYY}"]...)
			if r.FiscalYearStart != 1 {
				*out = append(append(*out, "-"), datePlaces["{YY}"]...)
			}
		case datePart[part] != nil:
			*out = append(*out, datePlaces[part]...)
		default:
			*out = append(*out, literally(part)...)
		}
	}
	return s
}

func literally(text string) []charset {
	places := make([]charset, len(text))
	for i := range places {
		places[i] = charset(text[i : i+1])
	}
	return places
}

// overlap says whether one text fits both.
func overlap(a, b []charset) bool {
	for i := range a {
		if !a[i].meets(b[i]) {
			return false
		}
	}
	return true
}

func (c charset) meets(other charset) bool {
	for i := range len(c) {
		for j := range len(other) {
			if c[i] == other[j] {
				return true
			}
		}
	}
	return false
}
