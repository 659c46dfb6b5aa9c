package pages

import "context"

var rights interface {
	Check(ctx context.Context, verb, queue string) error
	User(ctx context.Context) string
}
