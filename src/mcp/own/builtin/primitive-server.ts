import { GatewayError, type JsonRpcError, printable, type RequestMessage } from '#wire';
import type { Caller, Catalog, TargetAdapters } from '#gateway';
import { ownResult, type ServerInfo } from '../result-text.ts';
import { TOOL_META } from '../../catalogue/decorate.ts';
import { agreedRevision, ERROR, MODERN } from '../../wire/revisions.ts';
import { AGENT_OUTPUT, askSchema, BRIDGED_TOOL } from './ask-tools.ts';
import { fullName, offersOf, priceOf, type BridgedService, bridgedService, WORD } from './bridged-kinds.ts';

/** One agent or model as an MCP server with one tool. */
interface PrimitiveServer extends Pick<BridgedService, 'kind' | 'name'> {
  readonly info: ServerInfo;
  /** The result of `server/discover`, as JSON text. */
  discoverResult(): string;
  /**
   * The result of `initialize`, as JSON text, in the revision that the client asks for if it is known, else the newest.
   */
  initializeResult(asked: unknown): string;
  /** The result of `tools/list`, as JSON text. */
  listResult(modern: boolean): string;
  /** The error of a `tools/call` that names a wrong tool; null for the right tool. */
  toolFault(message: RequestMessage): JsonRpcError | null;
}

/**
 * The server at an address for a caller. Null if the address is not one of an agent or a model. Throws GatewayError
 * `permission_denied`.
 */
export type PrimitiveServerOf = (service: string, caller: Pick<Caller, 'key'>) => PrimitiveServer | null;

export interface PrimitiveServersDeps {
  readonly targets: () => Partial<TargetAdapters>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  /** Version of this program. */
  readonly version: string;
}

const DOES = {
  a2a: 'Send a message to the agent',
  model: 'Ask the model',
  image: 'Make an image with',
  video: 'Make a video with',
} as const;
const CAPABILITIES = '{"tools":{}}';

export function createPrimitiveServers({ targets, catalog, version }: PrimitiveServersDeps): PrimitiveServerOf {
  return (service, { key }) => {
    const bridged = bridgedService(targets(), service);
    if (bridged === null) return null;
    const { kind, name } = bridged;
    const { service: resolved, offers } = offersOf(catalog, kind, name);
    if (key?.allowedServices && !key.allowedServices.includes(resolved))
      throw new GatewayError('permission_denied', `This API key may not use ${resolved}`, { param: 'model' });
    const { displayName, description } = offers[0]!;
    const info = { name: fullName(kind, name), title: displayName, version };
    const tool = BRIDGED_TOOL[kind];
    const instructions = JSON.stringify(
      `This is the ${WORD[kind]} ${displayName}, through a gateway that charges your account for answers. ${tool} asks it; its price is in _meta["${TOOL_META.price}"].`,
    );

    return {
      kind,
      name,
      info,
      discoverResult: () =>
        ownResult(
          { supportedVersions: JSON.stringify([MODERN]), capabilities: CAPABILITIES, instructions },
          info,
          true,
          true,
        ),
      initializeResult(asked) {
        const members = {
          protocolVersion: JSON.stringify(agreedRevision(asked)),
          capabilities: CAPABILITIES,
          serverInfo: JSON.stringify(info),
          instructions,
        };
        return ownResult(members, info, false, false);
      },
      listResult(modern) {
        const definition = {
          name: tool,
          title: displayName,
          description: `${DOES[kind]} ${displayName}.${description === '' ? '' : ` ${description}`}`,
          inputSchema: askSchema(kind, false),
          ...(kind === 'a2a' ? { outputSchema: AGENT_OUTPUT } : {}),
          _meta: { [TOOL_META.price]: priceOf(offers) },
        };
        return ownResult({ tools: JSON.stringify([definition]) }, info, modern, true);
      },
      toolFault({ params }) {
        const named = params?.['name'];
        if (named === tool) return null;
        if (typeof named !== 'string') return { code: ERROR.invalidParams, message: 'tools/call needs a name' };
        return { code: ERROR.invalidParams, message: `There is no tool ${printable(named)} here: the tool is ${tool}` };
      },
    };
  };
}
