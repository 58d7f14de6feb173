import type { JsonObject } from '#wire';
import { badParams } from './errors-rpc.ts';
import { type Method, type Param, paramsOf, paramsWithout, pathOf } from './method.ts';

const API = '/api/v1';

type Words = Pick<Method, 'name' | 'summary' | 'open'>;

/** A method for a GET endpoint. Its parameters become the query. */
export function page(words: Words, url: string): Method {
  return {
    ...words,
    route: { verb: 'GET', url: API + url },
    described: 'query',
    answers: 'http',
    toInner: (asked) => ({ verb: 'GET', path: API + url + queryOf(paramsOf(asked)) }),
  };
}

/**
 * For an endpoint that can also send an unlimited file: refuses the file format, because a JSON-RPC reply is one
 * message.
 */
export const withoutFiles = (method: Method): Method => ({
  ...method,
  toInner(asked) {
    if (paramsOf(asked)['format'] === 'csv')
      throw badParams(`${method.name} gives no files over JSON-RPC: GET ${method.route.url}?format=csv`, 'format');
    return method.toInner(asked);
  },
});

/** The address of an item. */
interface Address {
  /** The path before the name. It ends with a slash. */
  readonly before: string;
  /** The path after the name. Default: none. */
  readonly after?: string;
  /** The path in the reference, if it is another than that of the route. */
  readonly described?: string;
}

/** A method for a GET endpoint with the name of one item in its path. */
export function pageOf(words: Words, { before, after = '', described }: Address, param: Param): Method {
  return {
    ...words,
    route: { verb: 'GET', url: `${API}${before}*` },
    ...(described === undefined ? {} : { describedAt: API + described }),
    params: [param],
    answers: 'http',
    toInner: (asked) => ({ verb: 'GET', path: API + before + pathOf(paramsOf(asked)[param.name], param.name) + after }),
  };
}

/**
 * A method for a billed POST endpoint. Its parameters become the body, unchanged. Streams are refused, because a
 * JSON-RPC reply is one message.
 */
export function post(words: Words, url: string): Method {
  const path = API + url;
  return {
    ...words,
    billed: true,
    route: { verb: 'POST', url: path },
    described: 'body',
    answers: 'http',
    toInner(asked) {
      if (paramsOf(asked)['stream'] === true)
        throw badParams(`${words.name} does not stream over JSON-RPC: leave stream out, or POST ${path}`, 'stream');
      return { verb: 'POST', path, body: paramsWithout(asked, ['_meta']) };
    },
  };
}

function queryOf(params: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (name === '_meta') continue;
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw badParams(`${name} must be a string, a number or a boolean`, name);
    query.append(name, String(value));
  }
  return query.size === 0 ? '' : `?${query.toString()}`;
}
