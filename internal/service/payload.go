package service

import "github.com/skeinq/skein/internal/shown"

// Octets are bytes in the JSON of a request.
type Octets = shown.Octets

// OctetsOf returns bytes in their JSON form.
func OctetsOf(data []byte) Octets { return shown.OctetsOf(data) }

// octets returns the bytes that a request gives.
func octets(o *Octets) ([]byte, error) {
	data, err := o.Bytes()
	if err != nil {
		return nil, ProblemBadRequest.With("%v", err)
	}
	return data, nil
}

// Payload is a payload as a record of its own.
type Payload = shown.PayloadRecord
