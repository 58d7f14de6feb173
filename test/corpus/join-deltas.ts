import type { Json } from './goldens.ts';

/** The message that the deltas of a stream make: texts are joined, lists go on, calls are joined by their indexes. */
export function joinDeltas(deltas: readonly Json[]): Json {
  const message: Json = { content: null };
  const calls: { function?: { arguments: string } }[] = [];
  for (const { tool_calls: parts, ...delta } of deltas) {
    for (const [name, value] of Object.entries(delta)) message[name] = joined(message[name], value);
    for (const { index, ...part } of (parts ?? []) as { index: number; function: { arguments?: string } }[]) {
      const call = (calls[index] ??= {});
      const before = call.function?.arguments ?? '';
      Object.assign(call, part, { function: { ...call.function, ...part.function } });
      call.function!.arguments = before + (part.function.arguments ?? '');
    }
  }
  return calls.length === 0 ? message : { ...message, tool_calls: calls };
}

function joined(before: unknown, more: unknown): unknown {
  if (typeof before === 'string' && typeof more === 'string') return before + more;
  return Array.isArray(before) && Array.isArray(more) ? [...(before as unknown[]), ...(more as unknown[])] : more;
}
