import { GatewayError } from '#errors';
import type { ArchivedCallPlace } from '#billing';

/** The archive that has a call of `account` (null: of any); null if none has. */
export type FindArchived = (id: string, account: string | null) => Promise<ArchivedCallPlace | null>;

/** Throws GatewayError `archived`, which says where the record is, and then `more`; does nothing for null. */
export function refuseArchived(place: ArchivedCallPlace | null, more = ''): void {
  if (place === null) return;
  throw new GatewayError(
    'archived',
    `Calls before ${dayOf(place.endsAt)} are archived. The record of this one is in ${place.archive}, which the operator of the gateway has${more}`,
    { param: 'id' },
  );
}

/** The UTC day of a time in epoch milliseconds. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
