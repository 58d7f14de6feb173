import type { findAttempts } from '#analytics';
import type { Catalog } from '#catalog';
import type { LastFailures } from '#observe';
import { titled } from '../route-schemas.ts';

export type FailingDeps = {
  readonly offers: Catalog['offers'];
  readonly lastFailures: Pick<LastFailures, 'all'>;
};

/** A provider that was tried and has answered no attempt. */
interface FailingProvider {
  readonly provider: string;
  readonly name: string;
  readonly attempts: number;
}

/** Those of the current offers, the most failures first. */
export function failingProviders(
  offers: ReturnType<Catalog['offers']>,
  attempts: Awaited<ReturnType<typeof findAttempts>>,
): readonly FailingProvider[] {
  const sums = new Map<string, { readonly name: string; successes: number; failures: number }>();
  for (const { id, provider } of offers) {
    const sum = sums.get(provider.id) ?? { name: provider.name, successes: 0, failures: 0 };
    sums.set(provider.id, sum);
    sum.successes += attempts.get(id)?.successes ?? 0;
    sum.failures += attempts.get(id)?.failures ?? 0;
  }
  return [...sums]
    .flatMap(([provider, { name, successes, failures }]) =>
      successes === 0 && failures > 0 ? [{ provider, name, attempts: failures }] : [],
    )
    .sort((one, other) => other.attempts - one.attempts);
}

const nullable = (type: string, description: string) => ({ type: [type, 'null'], description });

export const failingSchema = titled('FailingProvider', {
  type: ['object', 'null'],
  description: 'Set if all attempts at this provider failed. null for every other provider.',
  required: ['attempts', 'service', 'reason', 'status', 'at'],
  properties: {
    attempts: { type: 'integer', description: 'Attempts that failed on the days of the range.' },
    service: nullable('string', 'The service of the newest of them. null if it was before the start of this process.'),
    reason: nullable('string', 'Why the newest of them failed.'),
    status: nullable('integer', 'HTTP status of the provider; null without one.'),
    at: nullable('string', 'RFC 3339'),
  },
});

export function viewFailing({ provider, attempts }: FailingProvider, lastFailures: FailingDeps['lastFailures']) {
  const newest = lastFailures.all(provider)[0];
  return {
    attempts,
    service: newest?.service ?? null,
    reason: newest?.reason ?? null,
    status: newest?.status ?? null,
    at: newest === undefined ? null : new Date(newest.at).toISOString(),
  };
}
