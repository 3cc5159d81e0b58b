package domain

// Role is what a caller may do; the schema says at each field which roles may reach it.
type Role string

// The roles. A CUSTOMER is bound to one customer and sees nothing of the others.
const (
	RoleAdmin    Role = "ADMIN"
	RoleService  Role = "SERVICE"
	RoleCustomer Role = "CUSTOMER"
)
