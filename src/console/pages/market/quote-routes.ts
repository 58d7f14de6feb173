import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { type CallRequest, type Pipeline, type Quotable, quoteSchema, type QuoteView } from '#call';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { MUST_BE, DOCUMENTED, onlyIf } from '#http';
import { requireAdmission } from '#auth';

interface QuoteRoutesDeps {
  readonly admit: Pipeline['admit'];
  readonly quotables: Readonly<Record<string, Quotable>>;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
}

const QUOTED = KINDS_OF_MODELS.filter(([, { quotedBy }]) => quotedBy !== undefined);

const DESCRIPTION =
  'Quotes a call of any kind. The body is the body of the call plus `primitive`: `model` (of chat, or of a model that ' +
  `${new Intl.ListFormat('en', { type: 'disjunction' }).format(QUOTED.map(([, { does }]) => does))}), ` +
  '`image`, `video`, `tool` (with `tool`, such as `demo/tools/roll_dice`, and `arguments`), or `agent` (with `agent`). ' +
  'The quote is binding: a call with the header `x-quote-id` costs the quoted price, even if the price has risen. If `exact` is false, it costs at most the quoted price.';

const NAME = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]+$' };
const priced = (name: string, more: readonly string[] = []) => ({
  required: [name, ...more],
  properties: { [name]: NAME },
});
const MEDIA = {
  anyOf: [
    priced('model'),
    { required: ['models'], properties: { models: { type: 'array', minItems: 1, items: NAME } } },
  ],
};

/** The members of the body of a model's call, once for the kinds that have the same. */
const MODEL_BODIES = [
  ...new Map(
    [['messages'], ...QUOTED.map(([, { quotedBy = [] }]) => quotedBy)].map((body) => [body.join(), body]),
  ).values(),
];

/** The rules of the body by the kind of call, for the reference. The reader of the call checks them. */
const NEEDED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  model: { anyOf: MODEL_BODIES.map((more) => priced('model', more)) },
  image: MEDIA,
  video: { allOf: [MEDIA, { required: ['duration'] }] },
  tool: priced('tool'),
  agent: priced('agent'),
};
const forPrimitive = (primitive: string) => ({
  required: ['primitive'],
  properties: { primitive: { const: primitive } },
});

/** `POST /quotes`: the price of a call before it is made. Register it under `/api/v1`. */
export function quoteRoutes({ admit, quotables, quote }: QuoteRoutesDeps): FastifyPluginAsync {
  const names = Object.keys(quotables);
  const schema = {
    summary: 'Say what a call costs',
    operationId: 'quoteCall',
    description: DESCRIPTION,
    tags: ['Account'],
    body: {
      type: 'object',
      required: ['primitive'],
      examples: [{ primitive: 'tool', tool: 'demo/tools/roll_dice' }],
      additionalProperties: true,
      [MUST_BE]: 'a JSON object',
      [DOCUMENTED]: {
        allOf: Object.entries(NEEDED).map(([primitive, needed]) => onlyIf(forPrimitive(primitive), needed)),
      },
      properties: {
        primitive: { enum: names, description: 'What is called.', [MUST_BE]: `one of ${names.join(', ')}` },
      },
    },
    response: { 200: quoteSchema },
  };
  return async (app) => {
    const admissionOf = requireAdmission(app, admit, true);
    app.post<{ Body: { readonly primitive: string } & Record<string, unknown> }>(
      '/quotes',
      { schema },
      async (request, reply) => {
        const { primitive, ...body } = request.body;
        const quotable = quotables[primitive];
        if (quotable === undefined)
          throw new GatewayError('invalid_request', `primitive must be one of ${names.join(', ')}`, {
            param: 'primitive',
          });
        const { caller } = admissionOf(request);
        const call = await quotable(body, { caller, requestId: request.id, headers: request.headers });
        return reply.send(await quote({ ...call, quote: null }));
      },
    );
  };
}
