import { type Health, type HealthSources, type Offer, offerStatus } from '#catalog';
import type { LastFailures, ReportedGateway, ReportedOutage } from '#observe';

/*
 * Health of offers for the operator, over all gateways of the database. The public pages show what holds for all
 * accounts; here an offer is healthy only if its calls succeed for everybody.
 */

export type HealthOfOperator = HealthSources['health'] & Pick<Health, 'evidence' | 'outageOf'>;

interface StatusDeps extends HealthSources {
  readonly health: HealthOfOperator;
  readonly lastFailures: Pick<LastFailures, 'newestOf'>;
}

const nullable = (description: string) => ({ type: ['string', 'null'], description });

export const statusProperties = {
  status: {
    type: ['string', 'null'],
    enum: ['healthy', 'untried', 'degraded', 'failing', 'cooling_down', 'away', null],
    description:
      'As in the public pages, but not `healthy` while its last call failed at any gateway. `degraded`: it rests for `failing_accounts`, or its last call failed, and the public pages show it as before. null if it is not offered now.',
  },
  status_since: nullable(
    'Since when it fails, as the processes that run have seen it; null if it does not or if unknown.',
  ),
  status_reason: nullable('Why it is not healthy: the last error of the provider. null if it is, or if unknown.'),
  status_call: nullable('Id of the call that had this error.'),
  failing_accounts: {
    type: 'array',
    items: { type: 'string' },
    description: 'The accounts for which alone it rests now, because their own calls failed there.',
  },
} as const;

/** The outages that other processes reported and that still hold, by offer. One that is silent may have ended. */
export function outagesElsewhere(gateways: readonly ReportedGateway[]): ReadonlyMap<string, readonly ReportedOutage[]> {
  const outages = gateways.flatMap((gateway) => (gateway.isThis || gateway.isSilent ? [] : (gateway.outages ?? [])));
  return Map.groupBy(outages, ({ offer }) => offer);
}

export function viewStatus(offer: Offer, deps: StatusDeps, elsewhere: readonly ReportedOutage[]) {
  const { health, lastFailures } = deps;
  const ofAll = offerStatus(offer, deps);
  const none = { status: ofAll, status_since: null, status_reason: null, status_call: null, failing_accounts: [] };
  if (ofAll === 'away') return { ...none, status_reason: "Its provider's proxy is not connected" };
  const { workedAt } = health.evidence(offer);
  const own = health.outageOf(offer);
  const outages = [
    ...(own === null ? [] : [{ ...own, ...lastFailures.newestOf(offer) }]),
    // What is forgotten there has ended with a success here.
    ...elsewhere.filter((each) => rests(each) || (each.since ?? 0) > (workedAt ?? 0)),
  ];
  const accounts = new Set(outages.flatMap((outage) => outage.accounts));
  const isUsed = ofAll === 'healthy' || ofAll === 'untried';
  const status =
    !isUsed || outages.length === 0 ? ofAll : outages.some(({ forAll }) => forAll) ? 'cooling_down' : 'degraded';
  if (status === 'healthy' || status === 'untried') return none;
  const since = Math.min(...outages.map((outage) => outage.since ?? Infinity));
  const newest = outages.find(({ reason }) => reason !== null) ?? lastFailures.newestOf(offer);
  return {
    status,
    status_since: Number.isFinite(since) ? new Date(since).toISOString() : null,
    status_reason: newest.reason,
    status_call: newest.call,
    failing_accounts: [...accounts].sort(),
  };
}

const rests = ({ forAll, accounts }: ReportedOutage): boolean => forAll || accounts.length > 0;
