package service

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/skeinq/skein/inspect"
)

// seal makes the cipher of cursors, checkpoints, keys and groups if ids or errors are redacted:
// these texts contain ids, and names of groups that are made of errors.
func (s *Service) seal() error {
	key := s.o.CursorKey
	switch {
	case key != nil && len(key) != 32:
		return fmt.Errorf("CursorKey has %d bytes; give 32, drawn at random", len(key))
	case s.o.RedactID == nil && s.o.RedactError == nil:
		return nil
	case key == nil:
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return fmt.Errorf("cursor key: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return fmt.Errorf("cursor key: %w", err)
	}

	s.sealer = &sealer{gcm: gcm, key: key}
	return nil
}

// sealer encrypts texts. The same text is always encrypted alike, so that an unchanged answer has
// the same ETag.
type sealer struct {
	gcm cipher.AEAD
	key []byte
}

func (s *sealer) seal(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	nonce := mac.Sum(nil)[:s.gcm.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(s.gcm.Seal(nonce, nonce, []byte(text), nil))
}

func (s *sealer) open(text string) (string, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < s.gcm.NonceSize() {
		return "", errors.New("damaged")
	}
	plain, err := s.gcm.Open(nil, data[:s.gcm.NonceSize()], data[s.gcm.NonceSize():], nil)
	return string(plain), err
}

// sealed returns a cursor, a checkpoint or a key in the form for clients.
func (s *Service) sealed(text string) string {
	if s.sealer == nil || text == "" {
		return text
	}
	return s.sealer.seal(text)
}

// opened returns the text that sealed has encrypted, or an error that wraps invalid.
func (s *Service) opened(text string, invalid error) (string, error) {
	if s.sealer == nil || text == "" {
		return text, nil
	}
	plain, err := s.sealer.open(text)
	if err != nil {
		return "", fmt.Errorf("%w: it is damaged, or was made with another CursorKey", invalid)
	}
	return plain, nil
}

// cursor reads a client's cursor.
func (s *Service) cursor(text string) (inspect.Cursor, error) {
	plain, err := s.opened(text, inspect.ErrInvalidCursor)
	if err != nil {
		return inspect.Cursor{}, err
	}
	return inspect.ParseCursor(plain)
}
