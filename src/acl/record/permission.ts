/** Permissions of an account in a space (ACL-1). Guests stand apart: they read through a shared key. */
export type Permission = "none" | "reader" | "guest" | "writer" | "admin" | "owner";

/** Roles that can be given to a person; the owner's only by transfer, the guest's only by the guest key. */
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

/** Mints and revokes invites, answers requests, adds, changes and removes members, changes the read key. */
export function canManage(permission: Permission): boolean {
  return permission === "owner" || permission === "admin";
}

/** Whether someone may give this role: an admin gives any but admin. */
export function mayGrant(actor: Permission, granted: GrantablePermission): boolean {
  return actor === "owner" || (actor === "admin" && granted !== "admin");
}

/** Whether someone may change or remove a member who holds this role: nobody the owner, an admin no admin. */
export function mayTouch(actor: Permission, target: Permission): boolean {
  if (target === "owner" || target === "guest") return false;
  return actor === "owner" || (actor === "admin" && target !== "admin");
}
