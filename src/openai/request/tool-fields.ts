import { MUST_BE, nameSchema } from '#gateway';

export const toolFields = {
  tools: {
    type: ['array', 'null'],
    maxItems: 1024,
    items: {
      type: 'object',
      required: ['type'],
      properties: {
        type: { type: 'string', [MUST_BE]: 'the type of the tool, such as "function"' },
        function: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of the function' },
          },
          [MUST_BE]: 'an object with a name',
        },
        service: {
          ...nameSchema,
          description: 'With type `mcp`: the service whose tools the gateway calls for the model.',
          [MUST_BE]: 'the name of a tool service',
        },
        allowed_tools: {
          type: ['array', 'null'],
          maxItems: 256,
          items: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of a tool' },
          description: 'With type `mcp`: those of its tools that the model may call. Default all.',
          [MUST_BE]: 'an array of at most 256 names of tools',
        },
      },
      anyOf: [
        {
          required: ['service'],
          properties: { service: { [MUST_BE]: 'the name of a tool service, whose tools the gateway calls' } },
        },
        { properties: { type: { not: { const: 'mcp' } } } },
      ],
      [MUST_BE]:
        'an object such as {"type": "function", "function": {"name": "…"}}, or {"type": "mcp", "service": "…"}',
    },
    description:
      'Tools that the model may ask for. A `function` is called by the client; the tools of a service that is named with type `mcp` are called by the gateway, ' +
      'each call billed for itself, until the model answers.',
    [MUST_BE]: 'an array of at most 1024 tools',
  },
  tool_choice: {
    type: ['string', 'object', 'null'],
    description: 'Which tool to use, or "auto", "none", "required".',
    [MUST_BE]: 'a string or an object',
  },
} as const;
