package pages

type Mail struct{ To string }

type Row struct{ Tenant string }
