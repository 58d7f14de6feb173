type Json = Record<string, unknown>;

interface KnownCall {
  readonly index: number;
  readonly id: string;
}

interface ToolCallDeltas {
  /**
   * Rewrites the `tool_calls` of one delta of one choice. `opened` is true when one of them is the first of its call.
   */
  normalise(choice: number, deltas: readonly unknown[]): { readonly calls: Json[]; readonly opened: boolean };
}

/**
 * Brings streamed tool calls into the one form that clients join correctly. `index` counts from 0 and is unique per
 * call. Only the first delta has `id`, `type` and `name`. Arguments are text. Providers leave out the index, start
 * it at 1, use one index for several calls, repeat the id and the name, or send the arguments as an object.
 */
export function createToolCallDeltas(callId: string): ToolCallDeltas {
  const choices = new Map<
    number,
    { count: number; last: KnownCall | null; byIndex: Map<number, KnownCall>; byId: Map<string, KnownCall> }
  >();

  return {
    normalise(choice, deltas) {
      let state = choices.get(choice);
      if (!state) choices.set(choice, (state = { count: 0, last: null, byIndex: new Map(), byId: new Map() }));
      const calls: Json[] = [];
      let opened = false;
      for (const delta of deltas) {
        if (typeof delta !== 'object' || delta === null) continue;
        const given = delta as Json;
        const id = typeof given['id'] === 'string' && given['id'] !== '' ? given['id'] : null;
        const index = typeof given['index'] === 'number' ? given['index'] : null;
        const fn =
          typeof given['function'] === 'object' && given['function'] !== null ? (given['function'] as Json) : {};
        let known: KnownCall | null | undefined;
        if (index !== null) known = state.byIndex.get(index);
        else if (id !== null) known = state.byId.get(id);
        // Without index and id, a name begins a new call, and arguments alone continue the last call.
        else if (!fn['name']) known = state.last;
        if (known && id !== null && known.id !== id) known = state.byId.get(id);
        const first = !known;
        if (!known) {
          known = { index: state.count++, id: id ?? `call_${callId}_${choice}_${state.count - 1}` };
          state.byId.set(known.id, known);
          opened = true;
        }
        if (index !== null) state.byIndex.set(index, known);
        state.last = known;
        calls.push(rewritten(given, fn, known, first));
      }
      return { calls, opened };
    },
  };
}

function rewritten(given: Json, fn: Json, known: KnownCall, first: boolean): Json {
  const text = argumentsText(fn['arguments']);
  const call: Json = { ...given, index: known.index };
  if (first) {
    call['id'] = known.id;
    call['type'] = typeof given['type'] === 'string' && given['type'] !== '' ? given['type'] : 'function';
    call['function'] = { ...fn, arguments: text ?? '' };
  } else {
    delete call['id'];
    delete call['type'];
    const { name: _, ...rest } = fn;
    call['function'] = text === null ? rest : { ...rest, arguments: text };
  }
  return call;
}

function argumentsText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
