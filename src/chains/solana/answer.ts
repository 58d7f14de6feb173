/* These functions read the fields of a node's answer. The caller turns their errors into ChainUnavailable. */

export function invalid(wanted: string, got: unknown): never {
  throw new Error(`${wanted} was expected, not ${got === null ? 'null' : typeof got}`);
}

export function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : invalid(what, value);
}

export function listOf(value: unknown, what: string, max: number): readonly unknown[] {
  if (!Array.isArray(value)) return invalid(what, value);
  if (value.length > max) throw new Error(`${what} of at most ${max} was expected, not of ${value.length}`);
  return value as readonly unknown[];
}

export function textOf(value: unknown, what: string): string {
  return typeof value === 'string' ? value : invalid(what, value);
}

export function flag(value: unknown, what: string): boolean {
  return typeof value === 'boolean' ? value : invalid(what, value);
}

/** Reads a whole number of 0 or more. JSON numbers arrive as bigint or number, amounts as text. */
export function natural(value: unknown, what: string): bigint {
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return BigInt(value);
  return invalid(what, value);
}

/** Reads an index into a list. It is below 256, because a message cannot have more accounts. */
export function indexOf(value: unknown, what: string): number {
  const index = natural(value, what);
  return index < 256n ? Number(index) : invalid(what, value);
}
