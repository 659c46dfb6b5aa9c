package pages

type Event struct{ Number int }
