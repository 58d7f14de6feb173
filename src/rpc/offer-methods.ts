import { isObject, NEVER_ABORTED } from '#wire';
import { createDispatch, type Dispatch } from './dispatch.ts';
import type { Ask, Behalf } from './inner-request.ts';
import type { Method } from './method.ts';
import { openRpc } from './open-rpc.ts';
import { type Outcome, outcomeOfHttp, resultOf } from './outcome.ts';

export interface Offered {
  readonly dispatch: Dispatch;
  /** Whether a method is offered, and only to those who say who they are. */
  isClosed(method: string): boolean;
  /** Whether an answer of it may have been paid for. */
  isBilled(method: string): boolean;
}

export interface OfferOptions {
  readonly methods: readonly Method[];
  readonly ask: Ask;
  readonly version: string;
  /** Of the endpoint. */
  readonly url: string;
}

/**
 * These methods and `rpc.discover`, whose document is made when it is first asked for and then kept: routes do not
 * change while a server runs.
 */
export function offerMethods({ methods, ask, version, url }: OfferOptions): Offered {
  let document: Promise<Outcome> | null = null;

  async function makeDocument(behalf: Behalf): Promise<Outcome> {
    // It is for everybody who asks meanwhile, whether or not the first one stays.
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
