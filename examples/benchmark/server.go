package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// startWithin is how long a Redis may take to answer.
const startWithin = 3 * time.Minute

// startRedis starts a Redis of its own, which keeps nothing on disk, on a free port of this
// machine. The returned function ends it.
func startRedis(ctx context.Context) (url string, stop func() error, err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "benchmark")
	if err != nil {
		return "", nil, err
	}

	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no", "--dir", dir)
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%w; install Redis or name one by -redis", err), os.RemoveAll(dir))
	}

	stop = func() error {
		err := server.Process.Kill()
		_ = server.Wait() // it was killed, and reports that
		return errors.Join(err, os.RemoveAll(dir))
	}

	url = fmt.Sprintf("redis://127.0.0.1:%d", port)
	if err := answers(ctx, url); err != nil {
		return "", nil, errors.Join(fmt.Errorf("redis-server does not answer: %w", err), stop())
	}
	return url, stop, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// answers waits until a Redis does.
func answers(ctx context.Context, url string) error {
	options, err := goredis.ParseURL(url)
	if err != nil {
		return err
	}
	client := goredis.NewClient(options)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err = client.Ping(ctx).Err(); err == nil || ctx.Err() != nil || time.Since(began) > startWithin {
			return errors.Join(err, client.Close())
		}
	}
}
