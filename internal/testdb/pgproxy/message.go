package pgproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Codes of the packets that open a connection, in the place of a version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssEncRequest = 80877104
)

// maxMessage is PostgreSQL's own limit. A longer one means that the framing was
// lost, and better an error than an allocation of that size.
const maxMessage = 1 << 30

// message is one message as it went over the wire.
type message struct {
	kind byte // 0 for a startup packet, which has no type byte
	raw  []byte
}

func (m message) body() []byte {
	if m.kind == 0 {
		return m.raw[4:]
	}
	return m.raw[5:]
}

func readMessage(r *bufio.Reader) (message, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return message{}, err
	}
	return readRest(r, kind, []byte{kind})
}

// readStartup reads a packet of the opening, and the code it starts with.
func readStartup(r *bufio.Reader) (m message, code uint32, err error) {
	m, err = readRest(r, 0, nil)
	if err != nil {
		return m, 0, err
	}
	if len(m.body()) < 4 {
		return m, 0, fmt.Errorf("startup packet of %d bytes", len(m.raw))
	}
	return m, binary.BigEndian.Uint32(m.body()), nil
}

func readRest(r *bufio.Reader, kind byte, head []byte) (message, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return message{}, err
	}
	n := binary.BigEndian.Uint32(length[:]) // counts itself, not the type byte
	if n < 4 || n > maxMessage {
		return message{}, fmt.Errorf("message %q of %d bytes", kind, n)
	}
	raw := make([]byte, len(head)+int(n))
	copy(raw, head)
	copy(raw[len(head):], length[:])
	_, err := io.ReadFull(r, raw[len(head)+4:])
	return message{kind: kind, raw: raw}, err
}

// asks reports whether the server answers the message with a ReadyForQuery.
func (m message) asks() bool {
	switch m.kind {
	case 0, 'Q', 'S', 'F': // startup, Query, Sync, FunctionCall
		return true
	}
	return false
}

// continues reports whether the message belongs to an exchange already asked
// for: CopyData, CopyDone, CopyFail, or an answer to an authentication request.
func (m message) continues() bool {
	switch m.kind {
	case 'd', 'c', 'f', 'p':
		return true
	}
	return false
}

// endsAnswer reports whether the server, having sent the message, waits for the
// client: nothing more will come until the client has seen it.
func (m message) endsAnswer() bool {
	switch m.kind {
	case 'Z', 'G', 'W': // ReadyForQuery, CopyInResponse, CopyBothResponse
		return true
	case 'R':
		if len(m.body()) < 4 {
			return false
		}
		switch binary.BigEndian.Uint32(m.body()) {
		case pgproto3.AuthTypeOk, pgproto3.AuthTypeSASLFinal:
			return false
		}
		return true
	}
	return false
}

// statements remembers the SQL behind each prepared statement of a connection:
// a client with a statement cache sends the text once and then only the name.
// Names that were closed need no care, they are not used before the next Parse.
type statements map[string]string

// executed returns the SQL the message has executed, if it does that.
func (s statements) executed(m message) (sql string, ok bool) {
	switch m.kind {
	case 'P':
		var parse pgproto3.Parse
		if parse.Decode(m.body()) == nil {
			s[parse.Name] = parse.Query
		}
	case 'B':
		var bind pgproto3.Bind
		if bind.Decode(m.body()) == nil {
			return s[bind.PreparedStatement], true
		}
	case 'Q':
		var query pgproto3.Query
		if query.Decode(m.body()) == nil {
			return query.String, true
		}
	}
	return "", false
}
