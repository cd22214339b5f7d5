package relay

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

const (
	// maxToken is what claimed_by holds, in characters.
	maxToken  = 255
	nonceSize = 16 // hexadecimal digits
	// mark stands behind the token of a claim of rows that a former claim left behind, once
	// for each such claim in a row.
	mark = "!"
)

// newToken is a claim token: the worker's id for people to read, and a nonce that
// makes it new for each claim. The id alone would not be a fence: it is the same
// after a restart. An id that is too long for the column, marks included, is cut.
func newToken(worker string) string {
	id := []rune(worker)
	if most := maxToken - 1 - nonceSize - (MostMarks + 1); len(id) > most {
		id = id[:most]
	}
	return string(id) + "/" + newNonce()
}

// newNonce is what was never there before.
func newNonce() string {
	var nonce [nonceSize / 2]byte
	rand.Read(nonce[:]) //nolint:errcheck // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(nonce[:])
}

func isNonce(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == nonceSize
}

// isToken reports whether claimed_by has the form of a relay's token.
func isToken(claimedBy string) bool {
	_, nonce, ok := cutLast(Unmarked(claimedBy), "/")
	return ok && isNonce(nonce)
}

// Unmarked is a token without its marks. It is the fence of a claim: marks come and go.
func Unmarked(token string) string { return strings.TrimRight(token, mark) }

// Marked is a token with one mark more.
func Marked(token string) string { return token + mark }

// Marks is how many claims of abandoned rows in a row claimed_by stands for; 0 if it is
// no relay's token. See [Request.Abandoned].
func Marks(claimedBy string) int {
	if !isToken(claimedBy) {
		return 0
	}
	return len(claimedBy) - len(Unmarked(claimedBy))
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
