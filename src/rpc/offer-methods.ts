import { isObject, NEVER_ABORTED } from '#wire';
import { createDispatch, type Dispatch } from './dispatch.ts';
import type { Ask, Behalf } from './inner-request.ts';
import type { Method } from './method.ts';
import { openRpc } from './open-rpc.ts';
import { type Outcome, outcomeOfHttp, resultOf } from './outcome.ts';

export interface Offered {
  readonly dispatch: Dispatch;
  /** Whether a method is offered and needs a credential. */
  isClosed(method: string): boolean;
  /** Whether the answer of a method may have been paid for. */
  isBilled(method: string): boolean;
}

export interface OfferOptions {
  readonly methods: readonly Method[];
  readonly ask: Ask;
  readonly version: string;
  /** URL of the endpoint. */
  readonly url: string;
}

/**
 * Offers these methods and `rpc.discover`. The document of `rpc.discover` is made at the first request and then kept,
 * because routes do not change while a server runs.
 */
export function offerMethods({ methods, ask, version, url }: OfferOptions): Offered {
  let document: Promise<Outcome> | null = null;

  async function makeDocument(behalf: Behalf): Promise<Outcome> {
    // Several clients may wait for the document, so it is made even if the first client leaves.
    const page = outcomeOfHttp(await ask({ verb: 'GET', path: '/openapi.json' }, { ...behalf, gone: NEVER_ABORTED }));
    const openApi: unknown = page.kind === 'result' ? JSON.parse(page.text) : null;
    return resultOf(openRpc({ methods, openApi: isObject(openApi) ? openApi : {}, version, url }));
  }

  async function discover(behalf: Behalf): Promise<Outcome> {
    try {
      return await (document ??= makeDocument(behalf));
    } catch (error) {
      document = null;
      throw error;
    }
  }

  const closed = new Set(methods.filter(({ open }) => !open).map(({ name }) => name));
  const billed = new Set(methods.filter((method) => method.billed).map(({ name }) => name));
  return {
    dispatch: createDispatch({ methods, ask, discover }),
    isClosed: (method) => closed.has(method),
    isBilled: (method) => billed.has(method),
  };
}
