/** Permissions of an account in a space (ACL-1). Guests are apart: they read through a shared key. */
export type Permission = "none" | "reader" | "guest" | "writer" | "admin" | "owner";

/**
 * Roles that can be given to an account. The owner's role is given only by transfer, the guest's only by the guest key.
 */
export const GRANTABLE = ["reader", "writer", "admin"] as const;
export type GrantablePermission = (typeof GRANTABLE)[number];

/** Roles that an open invite may give. */
export const INVITABLE = ["reader", "writer"] as const;
export type InvitablePermission = (typeof INVITABLE)[number];

export function canRead(permission: Permission): boolean {
  return permission !== "none";
}

export function canWrite(permission: Permission): boolean {
  return permission === "owner" || permission === "admin" || permission === "writer";
}

/**
 * Whether the permission lets one mint and revoke invites, answer requests, add, change and remove members, and change
 * the read key.
 */
export function canManage(permission: Permission): boolean {
  return permission === "owner" || permission === "admin";
}

/** Whether `actor` may give this role: an admin may give any but admin. */
export function mayGrant(actor: Permission, granted: GrantablePermission): boolean {
  return actor === "owner" || (actor === "admin" && granted !== "admin");
}

/** Whether `actor` may change or remove a member with this role: nobody may touch the owner, and an admin no admin. */
export function mayChangeMember(actor: Permission, target: Permission): boolean {
  if (target === "owner" || target === "guest") return false;
  return actor === "owner" || (actor === "admin" && target !== "admin");
}
