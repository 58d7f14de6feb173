import type { Caller } from '#gateway';

/** The services that the caller may use and that the address selects, in no particular order. */
export interface Scope {
  readonly services: readonly string[];
  includes(service: string): boolean;
  /** Whether the address selects a service, an agent or a model with this full name. */
  selects(name: string): boolean;
  /** Whether the caller's key may use a service. */
  allows(service: string): boolean;
}

/** Most names in `?services=`. Further names are ignored. */
const SELECTED_MAX = 256;

/**
 * `selection` is the value of `?services=`: names of services, agents (`a2a/…`) and models (`model/…`), separated by
 * commas. Null selects all. Services that the key may not use, or that are not connected now, are skipped without an
 * error, because a client's address must stay valid while providers come and go.
 */
export function scopeOf(all: readonly string[], caller: Pick<Caller, 'key'>, selection: string | null): Scope {
  const allowed = caller.key?.allowedServices ?? null;
  const selected = selection === null ? null : new Set(selection.split(',', SELECTED_MAX).map((name) => name.trim()));
  const rights = allowed && new Set(allowed);
  const selects = (name: string) => !selected || selected.has(name);
  const allows = (service: string) => !rights || rights.has(service);
  if (!selected && !rights) return { services: all, includes: () => true, selects, allows };
  const includes = (service: string) => selects(service) && allows(service);
  return { services: all.filter(includes), includes, selects, allows };
}
