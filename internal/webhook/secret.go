package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

// secretPrefix begins the text of a secret, as Standard Webhooks writes it.
const secretPrefix = "whsec_"

// minSecretBytes and maxSecretBytes are the bounds of a key, as Standard Webhooks has them.
const (
	minSecretBytes = 24
	maxSecretBytes = 64
)

// Secret is a key that signs requests.
type Secret struct{ key []byte }

// ParseSecrets reads the text of a file of secrets: each line is whsec_ and the Base64 of 24 to 64
// bytes. Empty lines and those that begin with # are skipped. Requests are signed with each secret,
// so that receivers can change from one to the next. It returns core.ErrInvalidOptions for a text
// without a secret and for other lines; the error has the number of the line, and no secret.
func ParseSecrets(text string) ([]Secret, error) {
	var list []Secret
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}

		encoded, prefixed := strings.CutPrefix(line, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !prefixed || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
			return nil, fmt.Errorf("%w: line %d is no secret: write %s and the Base64 of %d to %d bytes, "+
				"as of openssl rand -base64 32",
				core.ErrInvalidOptions, number, secretPrefix, minSecretBytes, maxSecretBytes)
		}
		list = append(list, Secret{key})
	}

	if len(list) == 0 {
		return nil, fmt.Errorf("%w: there is no secret: write %s and the output of openssl rand -base64 32 into a line",
			core.ErrInvalidOptions, secretPrefix)
	}
	return list, nil
}

// signature returns the header webhook-signature of a request: a signature for each secret.
func signature(secrets []Secret, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
