import type { Caller } from '#accounts';
import { HTTP_ERRORS, toGatewayError } from '#http';
import { NewestOf } from './newest-of.ts';
import type { CallSink } from './observer.ts';

/** Refusals with the same words; numbers in them may differ. */
interface RefusalReason {
  /** The words of the newest. */
  readonly message: string;
  readonly requests: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

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
  /** At most 5 of different words, the newest first. Those of forgotten ones are in `requests` alone. */
  readonly reasons: readonly RefusalReason[];
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
  /** Since when they are remembered: the start of this process, in epoch milliseconds. */
  readonly since: number;
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
/** The same of a reason. */
const REASON_BYTES = 100;
const REASONS_MAX = 5;

export function createLastRefusals(now: () => number): LastRefusals {
  const refusals = new NewestOf<AlikeRefusals>(
    ({ target, reasons }) =>
      ENTRY_BYTES +
      reasons.reduce((bytes, { message }) => bytes + REASON_BYTES + 2 * message.length, 2 * target.length),
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
    const message = copied(refusal.message.split(VALUE, 1)[0]!, MESSAGE_CHARS_MAX);
    const newest: AlikeRefusals = {
      code,
      status: HTTP_ERRORS[code].status,
      target,
      key,
      requests: (alike?.requests ?? 0) + 1,
      firstAt: alike?.firstAt ?? at,
      lastAt: at,
      message,
      reasons: withReason(alike?.reasons ?? [], message, at),
      requestId,
    };
    refusals.set(blamed.account, [newest, ...known.filter((one) => one !== alike)]);
  };

  return {
    since: now(),
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

function withReason(reasons: readonly RefusalReason[], message: string, at: number): readonly RefusalReason[] {
  const words = wordsOf(message);
  const isSame = (one: RefusalReason) => wordsOf(one.message) === words;
  const requests = (reasons.find(isSame)?.requests ?? 0) + 1;
  return [{ message, requests, lastAt: at }, ...reasons.filter((one) => !isSame(one))].slice(0, REASONS_MAX);
}

/** Amounts and times differ from one refusal to the next. */
const wordsOf = (message: string): string => message.replaceAll(/\d[\d.,]*/g, '0');

/** The beginning of a text in memory of its own. A slice would keep the whole text. */
const copied = (text: string, charsMax: number): string => Buffer.from(text.slice(0, charsMax)).toString();
