interface KnownCall {
  /** The provider's id; null as long as it has sent none. */
  id: string | null;
  /** Its place among the calls that the client has. */
  index: number;
  isNamed: boolean;
  /** Its deltas as one; null once the client has the call. */
  held: Record<string, unknown> | null;
}

interface ChoiceCalls {
  count: number;
  last: KnownCall | null;
  readonly byIndex: Map<number, KnownCall>;
  readonly byId: Map<string, KnownCall>;
  readonly waiting: Set<KnownCall>;
}

/**
 * The most deltas, and characters of arguments, that a stream holds back for names. More would cost memory, and time
 * for each delta, and output beyond the cap would be seen too late.
 */
const HELD_DELTAS_MAX = 256;
const HELD_CHARS_MAX = 64 * 1024;

interface NormalisedCalls {
  readonly calls: readonly Record<string, unknown>[];
  /** One of the calls is new, or waits for its name. */
  readonly isOpened: boolean;
}

interface ToolCallDeltas {
  /** Rewrites the `tool_calls` of one delta of one choice. `ends`: no more deltas of this choice follow. */
  normalise(choice: number, deltas: readonly unknown[], ends: boolean): NormalisedCalls;
}

/**
 * Brings streamed tool calls into the one form that clients join correctly. `index` counts from 0 and is unique per
 * call. Only the first delta has `id`, `type` and `name`. Arguments are text. Providers leave out the index, start
 * it at 1, use one index for several calls, repeat the id and the name, send them later, or send the arguments as an
 * object. A call waits for its name, because many clients take the name from the first delta alone. After
 * HELD_DELTAS_MAX deltas no call waits any more, and a late name goes out with a later delta.
 */
export function createToolCallDeltas(callId: string): ToolCallDeltas {
  const choices = new Map<number, ChoiceCalls>();
  let heldDeltas = 0;
  let heldChars = 0;
  const mayHold = (): boolean => heldDeltas < HELD_DELTAS_MAX && heldChars < HELD_CHARS_MAX;

  const begun = (state: ChoiceCalls, choice: number, call: KnownCall): Record<string, unknown> => {
    const held = call.held!;
    const { type } = held;
    call.held = null;
    call.index = state.count++;
    return {
      ...held,
      index: call.index,
      id: call.id ?? `call_${callId}_${choice}_${call.index}`,
      type: typeof type === 'string' && type !== '' ? type : 'function',
    };
  };

  const released = (state: ChoiceCalls, choice: number): Record<string, unknown>[] => {
    const calls = [...state.waiting].map((call) => begun(state, choice, call));
    state.waiting.clear();
    return calls;
  };

  return {
    normalise(choice, deltas, ends) {
      let state = choices.get(choice);
      if (!state) {
        if (deltas.length === 0) return NOTHING;
        choices.set(
          choice,
          (state = { count: 0, last: null, byIndex: new Map(), byId: new Map(), waiting: new Set() }),
        );
      }
      const calls: Record<string, unknown>[] = [];
      let isOpened = false;
      for (const delta of deltas) {
        if (typeof delta !== 'object' || delta === null) continue;
        const fields = delta as Record<string, unknown>;
        const fn =
          typeof fields['function'] === 'object' && fields['function'] !== null
            ? (fields['function'] as Record<string, unknown>)
            : {};
        const call = callOf(state, fields, fn);
        if (call.held === null) {
          calls.push(continued(fields, fn, call));
          continue;
        }
        isOpened = true;
        call.held = joined(call.held, fields, fn);
        call.isNamed ||= isName(fn['name']);
        if (!call.isNamed && mayHold() && (state.waiting.has(call) || isFunction(fields))) {
          state.waiting.add(call);
          heldDeltas++;
          heldChars += argumentsText(fn['arguments'])?.length ?? 0;
          if (!mayHold()) calls.push(...released(state, choice));
          continue;
        }
        state.waiting.delete(call);
        calls.push(begun(state, choice, call));
      }
      if (ends && state.waiting.size > 0) {
        calls.push(...released(state, choice));
        isOpened = true;
      }
      return { calls, isOpened };
    },
  };
}

const NOTHING: NormalisedCalls = { calls: [], isOpened: false };

const isName = (name: unknown): boolean => typeof name === 'string' && name !== '';

/** Whether a first delta is that of a function. Calls of other kinds have their names elsewhere. */
const isFunction = ({ type, function: fn }: Record<string, unknown>): boolean =>
  type === 'function' || (typeof fn === 'object' && fn !== null);

function callOf(state: ChoiceCalls, fields: Record<string, unknown>, fn: Record<string, unknown>): KnownCall {
  const id = typeof fields['id'] === 'string' && fields['id'] !== '' ? fields['id'] : null;
  const index = typeof fields['index'] === 'number' ? fields['index'] : null;
  let known: KnownCall | null | undefined;
  if (index !== null) known = state.byIndex.get(index);
  else if (id !== null) known = state.byId.get(id);
  // Without index and id, a name begins a new call, unless the last call waits for one. Arguments alone continue the
  // last call.
  else if (!fn['name'] || (state.last !== null && state.waiting.has(state.last))) known = state.last;
  // Another id begins a new call. But the first id of a call may come late.
  if (known && id !== null && known.id !== id && (known.id !== null || (known.isNamed && fn['name'])))
    known = state.byId.get(id);
  const call = known ?? { id, index: -1, isNamed: false, held: {} };
  call.id ??= id;
  if (id !== null) state.byId.set(id, call);
  if (index !== null) state.byIndex.set(index, call);
  return (state.last = call);
}

/** Two deltas as one. What the first one says counts. */
function joined(
  held: Record<string, unknown>,
  fields: Record<string, unknown>,
  fn: Record<string, unknown>,
): Record<string, unknown> {
  const before = (held['function'] ?? {}) as Record<string, unknown>;
  const text = ((before['arguments'] as string | undefined) ?? '') + (argumentsText(fn['arguments']) ?? '');
  return { ...fields, ...membersOf(held), function: { ...fn, ...membersOf(before), arguments: text } };
}

const membersOf = (members: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => (value ?? '') !== ''));

function continued(
  fields: Record<string, unknown>,
  fn: Record<string, unknown>,
  call: KnownCall,
): Record<string, unknown> {
  const { id: _, type: __, ...rest } = fields;
  const { name, ...more } = fn;
  const text = argumentsText(fn['arguments']);
  if (text !== null) more['arguments'] = text;
  if (!call.isNamed && isName(name)) {
    call.isNamed = true;
    more['name'] = name;
  }
  return { ...rest, index: call.index, function: more };
}

export function argumentsText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
