import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { after } from '#wire';
import { requireAdmission } from '#auth';
import { GatewayError } from '#errors';
import { requestedModels } from '#call';
import { tokenizedBytes, resolveAny } from '#catalog';
import { targetOf } from '#bridge';
import type { ChatBody } from '../chat/chat-schema.ts';
import { tokensOf, measurePrompt } from '../chat/request/prompt-size.ts';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { answerError, createReadBody, errorsOf, refusesAs } from './translated-route.ts';
import { requestDepsOf, type WireDeps, WireRequest } from './wire-request.ts';
import type { ChatWire, Translation } from './chat-wire.ts';
import { offersOf, type RoutedBody, translateAsFar } from './as-native.ts';

export interface CountedWire<B> {
  readonly path: string;
  readonly schema: { readonly properties: object };
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** The member of the answer that has the number. */
  readonly schemaName: string;
  /** Further members of the answer. */
  readonly more: Readonly<Record<string, string>>;
  readonly wire: ChatWire<B>;
}

const TOKENS_PER_MESSAGE = 16;
/** For an image of a million pixels, at a model that does not state the tokens of its images. */
const TOKENS_PER_IMAGE = 1_400;

/**
 * Adds a route that estimates the tokens of a prompt. It is free, and asks no provider. Its rate limit applies to
 * all routes of `app`.
 */
export function addCountRoute<B extends RoutedBody & { readonly tools?: unknown }>(
  app: FastifyInstance,
  { pipeline, config, onError, ...deps }: WireDeps,
  { path, schema, described, schemaName, more, wire }: CountedWire<B>,
): void {
  const readBody = createReadBody<B>(config.limits, schema);
  const requestDeps = requestDepsOf({ ...deps, config });
  const { targets } = requestDeps;

  const admissionOf = requireAdmission(app, pipeline.admitCount);
  const { address } = wire;
  const placeFor = (request: FastifyRequest) => address && ((parsed: unknown) => address.place(parsed, request));

  /** Throws or rejects with GatewayError for a model that the paid call would not find. */
  function find(body: ChatBody): void | Promise<void> {
    const known = targets();
    const spoken = targetOf(known, body.model);
    if (spoken !== null && spoken.target.primitive !== 'model' && !known.model?.has(body.model)) {
      const { target, name } = spoken;
      if (target.has(name)) return;
      return after(pipeline.lookUp(name, target.primitive), () => {
        if (target.has(name)) return;
        throw new GatewayError('invalid_model', `Not found: ${body.model.slice(0, 256)}`, { param: 'model' });
      });
    }
    const { catalog } = deps;
    const names = requestedModels(body);
    if (catalog === undefined || names.some((name) => catalog.knows(name, 'model'))) return;
    // Another gateway of the database may have just registered it.
    return after(pipeline.lookUp(names[0]!, 'model'), () => void resolveAny(catalog, names, 'model'));
  }

  function count(requestBody: B, request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const { caller } = admissionOf(request);
    const { translation, untranslatable } = translateAsFar(
      wire,
      requestBody,
      new WireRequest(request, caller, requestBody.model, requestDeps),
    );
    return after(find(translation.body), () => {
      const { bytes, messages, images } = measurePrompt(translation.body);
      // These tools were left out of the translation, but a provider that speaks the wire gets them.
      const tools = untranslatable === null ? 0 : tokenizedBytes(JSON.stringify(requestBody.tools ?? null));
      void reply.header('request-id', request.id).send({
        ...more,
        [schemaName]:
          tokensOf(bytes + tools) + messages * TOKENS_PER_MESSAGE + images * tokensPerImage(deps, translation),
      });
    });
  }

  app.post<{ Body: Buffer | undefined }>(
    path,
    {
      schema: {
        ...described,
        ...wire.address?.schema,
        description:
          `${described.description}: a token for four bytes of text, ${TOKENS_PER_MESSAGE} for each message, ` +
          `and for an image the model's \`image_tokens_max\`, or ${TOKENS_PER_IMAGE.toLocaleString('en')} if it has none. Free.`,
        tags: ['Models'],
        consumes: ['application/json'],
        body: schema,
        response: {
          200: {
            type: 'object',
            required: [schemaName],
            properties: {
              ...Object.fromEntries(
                Object.entries(more).map(([name, value]) => [name, { type: 'string', const: value }]),
              ),
              [schemaName]: { type: 'integer', description: 'Tokens.' },
            },
          },
          ...errorsOf(wire),
        },
      },
      validatorCompiler: () => () => true,
      errorHandler: answerError({ onError }, wire),
      config: { ...refusesAs(wire), clientsAppend: true, ...wire.address?.config },
    },
    (request, reply) =>
      after(readBody(request.body, request.headers, placeFor(request)), (requestBody) => {
        if (wire.resolve === undefined) return count(requestBody, request, reply);
        const bytes = request.body ?? Buffer.alloc(0);
        const memory = app.requestBodies.beside(request);
        return wire
          .resolve(requestBody, bytes, admissionOf(request).caller, memory)
          .then(({ requestBody }) => count(requestBody, request, reply))
          .finally(memory.release);
      }),
  );
}

/**
 * The tokens that an image may have at any provider of the model. Too many are counted rather than too few, because
 * clients shorten a conversation by this number.
 */
function tokensPerImage({ catalog }: Pick<ChatDeps, 'catalog'>, { body }: Translation): number {
  const offers = catalog === undefined ? [] : offersOf(catalog, body.model);
  const each = offers.map(({ model }) => model!.imageTokensMax ?? TOKENS_PER_IMAGE);
  return each.length === 0 ? TOKENS_PER_IMAGE : Math.max(...each);
}
