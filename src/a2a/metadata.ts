import { formatUsd, membersOf, splice, withMembers, type SettledFrame } from '#gateway';

const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'] as const;

/** What a reply says of the money, in the metadata of its task, message or update. */
export function withCost(text: string, callId: string, settled: Pick<SettledFrame, 'settlement' | 'receipt'> | null): string {
  return withMetadata(text, {
    'tollgate/generation': JSON.stringify(callId),
    ...(settled === null ? {} : { 'tollgate/cost_usd': JSON.stringify(formatUsd(settled.settlement.charged)) }),
    ...(settled?.receipt ? { 'tollgate/receipt': JSON.stringify(settled.receipt) } : {}),
  });
}

/** A result or an event of either version, with members (JSON text) set in the `metadata` of what it holds. */
export function withMetadata(text: string, members: Readonly<Record<string, string>>): string {
  const top = membersOf(text);
  const wrapped = top.has('kind') ? undefined : WRAPPED.map((name) => top.get(name)).find((span) => span !== undefined && text[span.start] === '{');
  const holder = wrapped ?? { start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 };
  const metadata = (wrapped ? membersOf(text, wrapped.start) : top).get('metadata');
  if (metadata && text[metadata.start] === '{') return splice(text, [withMembers(text, metadata, members)]);
  const made = `{${Object.entries(members)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
    .join(',')}}`;
  return splice(text, [withMembers(text, holder, { metadata: made })]);
}
