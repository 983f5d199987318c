package pdanswer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// What an answer of PD may hold at most. The owner of the namespace decides what
// answers at PD's address, and an operator has 128 MiB for all of them: without these
// bounds 8 MiB of empty stores take 1.6 GiB.
const (
	// maxAnswer bounds an answer, in bytes; ten thousand stores take half of it.
	maxAnswer = 4 << 20
	// maxRulesAnswer bounds the list of placement rules, in bytes, of which no more than maxAnswer
	// are kept; a rule of a table takes some 500.
	maxRulesAnswer = 16 << 20
	// maxConfig bounds an answer that is read in one piece, in bytes.
	maxConfig = 1 << 20
	// maxPiece bounds one element of a list, in bytes.
	maxPiece = 64 << 10
	// MaxRefusal bounds what is read of a refusal, in bytes.
	MaxRefusal = 4 << 10

	maxMembers = 64
	maxStores  = 20_000
	maxRules   = 10_000
	maxServers = 20_000
	// maxLabels bounds the labels of a store, the values of a constraint and the peers
	// of a region.
	maxLabels = 64
)

// reader reads an answer of PD, one JSON value after the other, element by element.
type reader struct {
	*json.Decoder
	body *meter
}

func newReader(body io.Reader, total, piece int64) *reader {
	m := &meter{from: body, total: total, piece: piece, left: piece}
	return &reader{Decoder: json.NewDecoder(m), body: m}
}

// meter passes on so many bytes in all, and so many for one piece.
type meter struct {
	from        io.Reader
	total, left int64
	piece       int64
	failed      error // of from; nil at its end
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	most := min(m.total, m.left)
	if most <= 0 {
		return 0, m.tooLong()
	}
	n, err := m.from.Read(p[:min(int64(len(p)), most)])
	m.total -= int64(n)
	m.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.failed = err
	}
	return n, err
}

// tooLong tells the end of what is allowed from the end of the answer.
func (m *meter) tooLong() error {
	var one [1]byte
	n, err := m.from.Read(one[:])
	switch {
	case n > 0 && m.total <= 0:
		return errTooLong
	case n > 0:
		return fmt.Errorf("a part of it is longer than %d bytes", m.piece)
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// value reads the next value.
func (r *reader) value(into any) error {
	r.body.left = r.body.piece
	return r.Decode(into)
}

// object reads an object: each field by a function that reads its value.
func (r *reader) object(field func(key string) error) error {
	if err := r.begin('{', errNoObject); err != nil {
		return err
	}
	for r.More() {
		r.body.left = r.body.piece
		key, err := r.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := field(name); err != nil {
			return err
		}
	}
	return r.end()
}

// skip passes over the next value.
func (r *reader) skip() error {
	var other json.RawMessage
	return r.value(&other)
}

// list reads a list, of at most so many elements, each by a function. Null is none.
func (r *reader) list(most int, what string, element func() error) error {
	r.body.left = r.body.piece
	t, err := r.Token()
	switch {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('['):
		return fmt.Errorf("its %s are no list", what)
	}
	for n := 0; r.More(); n++ {
		if n == most {
			return fmt.Errorf("it has more than %d %s", most, what)
		}
		if err := element(); err != nil {
			return err
		}
	}
	return r.end()
}

func (r *reader) begin(delimiter json.Delim, otherwise error) error {
	t, err := r.Token()
	if err == nil && t != delimiter {
		err = otherwise
	}
	return err
}

func (r *reader) end() error {
	r.body.left = r.body.piece
	_, err := r.Token()
	return err
}

// finish makes sure that there is nothing after the answer.
func (r *reader) finish() error {
	r.body.left = r.body.piece
	switch _, err := r.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errMore
}

var (
	errTooLong  = errors.New("it is too long")
	errNoObject = errors.New("it is not an object")
	errMore     = errors.New("there is more after it")
	errRules    = fmt.Errorf("it has more than %d rules", maxRules)
)

// checkCount says that a list of an element is longer than it is believed to be.
func checkCount(n int, what string) error {
	if n > maxLabels {
		return fmt.Errorf("it has something with %d %s, more than %d", n, what, maxLabels)
	}
	return nil
}

// bounded is an answer that is read element by element.
type bounded interface {
	// total is how long the answer may be, in bytes.
	total() int64
	read(r *reader) error
}

var (
	_ bounded = (*Members)(nil)
	_ bounded = (*Health)(nil)
	_ bounded = (*Stores)(nil)
	_ bounded = (*Rules)(nil)
	_ bounded = (*Regions)(nil)
	_ bounded = (*Keys)(nil)
)

// Decode decodes an answer, element by element if it can be. broken is why the
// connection that it came over broke, nil if it did not.
func Decode(body io.Reader, into any) (broken, err error) {
	var r *reader
	if lists, ok := into.(bounded); ok {
		r = newReader(body, lists.total(), maxPiece)
		err = lists.read(r)
	} else {
		r = newReader(body, maxConfig, maxConfig)
		err = r.value(into)
	}
	if err == nil {
		err = r.finish()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return r.body.failed, err
}
