import type { Caller } from '#accounts';
import { HTTP_ERRORS, toGatewayError } from '#http';
import { NewestOf } from './newest-of.ts';
import type { CallSink } from './observer.ts';

/** Requests of an account that were refused with the same error, for the same thing, by the same key. */
export interface AlikeRefusals {
  readonly code: string;
  /** The HTTP status of the error. */
  readonly status: number;
  /** The service of a call; else the protocol and service of the request, or its method and route. */
  readonly target: string;
  readonly key: { readonly hash: string; readonly label: string } | null;
  readonly requests: number;
  /** Epoch milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** The words of the newest. */
  readonly message: string;
  /** The `x-request-id` of the newest. */
  readonly requestId: string;
}

interface Refusal {
  readonly error: unknown;
  /** null: that of `blame`. */
  readonly caller: Caller | null;
  readonly target: string;
  readonly requestId: string;
}

/** Why requests of an account were refused, so that they have no record of a call. In memory, since the start. */
export interface LastRefusals {
  /** Receives calls whose money could not be locked. */
  readonly sink: CallSink;
  /** Of a caller without an account nothing is remembered. */
  note(refusal: Refusal): void;
  /** Says whose request the error refuses, where the caller is known only to who throws it. */
  blame(error: Error, caller: Caller): void;
  /** The newest first. `key`: only of the key with this hash. */
  refusalsOf(account: string, key: string | null): readonly AlikeRefusals[];
}

/** Begins the wrong value in a message. It may be text of a prompt, which nothing keeps. */
const VALUE = ', not "';
const TARGET_CHARS_MAX = 200;
const MESSAGE_CHARS_MAX = 500;
/** Of an entry without its texts, about. */
const ENTRY_BYTES = 300;

export function createLastRefusals(now: () => number): LastRefusals {
  const refusals = new NewestOf<AlikeRefusals>(
    ({ target, message }) => ENTRY_BYTES + 2 * (target.length + message.length),
  );
  const callers = new WeakMap<Error, Caller>();
  /** One error may come by several ways. */
  const noted = new WeakSet<Error>();

  const note = ({ error, caller, target: wholeTarget, requestId }: Refusal) => {
    // Something thrown that is no error belongs to no refusal.
    if (!(error instanceof Error)) return;
    const blamed = caller ?? callers.get(error) ?? null;
    if (blamed === null || blamed.anonymous || blamed.paying) return;
    if (noted.has(error)) return;
    noted.add(error);
    const refusal = toGatewayError(error);
    // It has a record, which a call of a run or of a loop of tools gets before its first attempt.
    if (refusal.headers?.['x-generation-id'] !== undefined) return;
    const { code } = refusal;
    const target = copied(wholeTarget, TARGET_CHARS_MAX);
    const key = blamed.key && { hash: blamed.key.hash, label: blamed.key.label };
    const known = refusals.entriesOf(blamed.account);
    const isAlike = (one: AlikeRefusals) => one.code === code && one.target === target && one.key?.hash === key?.hash;
    const alike = known.find(isAlike);
    const at = now();
    const newest: AlikeRefusals = {
      code,
      status: HTTP_ERRORS[code].status,
      target,
      key,
      requests: (alike?.requests ?? 0) + 1,
      firstAt: alike?.firstAt ?? at,
      lastAt: at,
      message: copied(refusal.message.split(VALUE, 1)[0]!, MESSAGE_CHARS_MAX),
      requestId,
    };
    refusals.set(blamed.account, [newest, ...known.filter((one) => one !== alike)]);
  };

  return {
    sink: {
      finished({ free, caller, service, requestId }, { resolution, error }) {
        if (free === null && resolution === null && error) note({ error, caller, target: service, requestId });
      },
    },
    note,
    blame: (error, caller) => void callers.set(error, caller),
    refusalsOf: (account, key) => refusals.entriesOf(account).filter((one) => key === null || one.key?.hash === key),
  };
}

/** The beginning of a text in memory of its own. A slice would keep the whole text. */
const copied = (text: string, charsMax: number): string => Buffer.from(text.slice(0, charsMax)).toString();
