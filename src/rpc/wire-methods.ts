import {
  interpretedFields,
  type InterpretedFieldsAt,
  isObject,
  type JsonObject,
  ambiguousKeyAt,
  type RequestMessage,
} from '#wire';
import { badParams } from './errors-rpc.ts';
import { type Method, type Param, paramsOf, paramsWithout, pathOf } from './method.ts';

type Words = Pick<Method, 'name' | 'summary' | 'billed'>;

const OBJECT: JsonObject = { type: 'object' };
const TEXT: JsonObject = { type: 'string' };

const NAMING: Readonly<Record<'service' | 'agent', InterpretedFieldsAt>> = {
  service: [[[], interpretedFields(['service'])]],
  agent: [[[], interpretedFields(['agent'])]],
};

/** The message to a JSON-RPC route at `path`, or at the name from `param` below it. */
function toEndpoint(
  asked: RequestMessage,
  method: string,
  path: string,
  param: 'service' | 'agent',
  without: readonly string[],
) {
  const params = paramsOf(asked);
  const fault = ambiguousKeyAt(params, NAMING[param], 'params.');
  if (fault !== null) throw badParams(fault.message, fault.param);
  const { [param]: name } = params;
  return {
    verb: 'POST' as const,
    path: name === undefined ? path : `${path}/${pathOf(name, param)}`,
    body: `{"jsonrpc":"2.0","id":${asked.idText},"method":${JSON.stringify(method)},"params":${paramsWithout(asked, [param, ...without])}}`,
  };
}

const SERVICE: Param = {
  name: 'service',
  description: 'The tool service. Without it, the tools of all services are meant, as `<service>__<tool>`.',
  schema: TEXT,
};

const ENVELOPE = 'io.modelcontextprotocol/protocolVersion';

/** An MCP request without a session. Its whole `_meta` is passed on, including the members for the gateway. */
export function mcp(words: Words, params: readonly Param[] = []): Method {
  return {
    ...words,
    route: { verb: 'POST', url: '/mcp' },
    params: [SERVICE, ...params],
    answers: 'wire',
    toInner(asked) {
      const meta = paramsOf(asked)['_meta'];
      if (isObject(meta) && Object.hasOwn(meta, ENVELOPE))
        throw badParams(
          `The envelope of an MCP revision is for POST /mcp: leave ${ENVELOPE} out of _meta here`,
          `_meta["${ENVELOPE}"]`,
        );
      return toEndpoint(asked, words.name, '/mcp', 'service', []);
    },
  };
}

const AGENT: Param = {
  name: 'agent',
  description: 'The agent. It may be left out if a task names it, or if there is only one agent.',
  schema: TEXT,
};

export const NAME: Param = { name: 'name', description: 'The tool.', required: true, schema: TEXT };
export const ARGUMENTS: Param = { name: 'arguments', description: "By the tool's input schema.", schema: OBJECT };
export const MESSAGE: Param = {
  name: 'message',
  description: 'A2A: `messageId`, `role` and `parts`.',
  required: true,
  schema: OBJECT,
};
export const CONFIGURATION: Param = { name: 'configuration', description: 'A2A.', schema: OBJECT };
export const TASK_ID: Param = { name: 'id', description: 'The task.', required: true, schema: TEXT };

/** An A2A request of this version. `method`: its name in that version, if it differs. */
export function a2a(words: Words, version: '0.3' | '1.0', params: readonly Param[] = [], method = words.name): Method {
  return {
    ...words,
    route: { verb: 'POST', url: '/a2a' },
    params: [AGENT, ...params],
    answers: 'wire',
    toInner: (asked) => ({
      ...toEndpoint(asked, method, '/a2a', 'agent', ['_meta']),
      headers: { 'a2a-version': version },
    }),
  };
}
