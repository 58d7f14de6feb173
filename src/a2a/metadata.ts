import { costOf, formatUsd, membersOf, splice, withMembers, type SettledFrame } from '#gateway';

const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'] as const;

/**
 * A reply with what it cost in the metadata of its task, message or update, as the results of MCP have it in `_meta`. `settled` is null while the work goes
 * on: then only the call is named.
 */
export function withCost(text: string, callId: string, settled: Pick<SettledFrame, 'settlement' | 'runCost' | 'receipt'> | null): string {
  const cost = settled === null ? {} : costOf(settled);
  return withMetadata(text, {
    'tollgate/generation': JSON.stringify({ id: callId, ...cost }),
    // What an agent writes there itself is no receipt of this gateway.
    'tollgate/receipt': settled?.receipt ? JSON.stringify(settled.receipt) : null,
  });
}

/** The same in the headers of a reply that is no stream, as chat has it. */
export function costHeaders(callId: string, settled: Pick<SettledFrame, 'settlement' | 'receipt'> | null): Readonly<Record<string, string>> {
  return {
    'x-generation-id': callId,
    ...(settled === null ? {} : { 'x-cost-usd': formatUsd(settled.settlement.charged) }),
    ...(settled?.receipt ? { 'x-receipt': settled.receipt } : {}),
  };
}

/** A result or an event of either version, with members set in the `metadata` of what it holds: JSON text, null removes. */
export function withMetadata(text: string, members: Readonly<Record<string, string | null>>): string {
  const top = membersOf(text);
  const wrapped = top.has('kind') ? undefined : WRAPPED.map((name) => top.get(name)).find((span) => span !== undefined && text[span.start] === '{');
  const holder = wrapped ?? { start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 };
  const metadata = (wrapped ? membersOf(text, wrapped.start) : top).get('metadata');
  if (metadata && text[metadata.start] === '{') return splice(text, [withMembers(text, metadata, members)]);
  const made = `{${Object.entries(members)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
    .join(',')}}`;
  return splice(text, [withMembers(text, holder, { metadata: made })]);
}
