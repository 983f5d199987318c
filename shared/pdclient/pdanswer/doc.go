// Package pdanswer decodes what PD answers and puts it into a View.
//
// In goes the body of an answer, of whatever answers at PD's address; out comes what of it
// is of interest, or why the answer is not believed: it is too long, holds too many
// elements or contradicts itself. It is read element by element, so that no answer takes more
// memory than its bounds allow. reader.go has the bounds, answer.go, regions.go and keys.go what
// is read, view.go what becomes of it.
//
// It is pure but for reading the body, and imports pd alone.
package pdanswer
