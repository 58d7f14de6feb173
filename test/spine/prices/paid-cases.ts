/** Something in a request that costs a vendor's money beside tokens. */
export interface PaidCase {
  readonly wire: 'chat' | 'messages' | 'responses' | 'gemini';
  readonly what: string;
  readonly asked: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** What becomes of it at a model without a price: refused with this place in the error, or left out by this name. */
  readonly otherwise:
    | { readonly refused: string; readonly leftOut?: never }
    | { readonly leftOut: string; readonly refused?: never };
  /** The price that lets it pass; null if there is none for it. */
  readonly price: 'web_search' | 'audio_output' | 'image_output' | null;
  /** Micro-USD that a lock with the price has at least. */
  readonly worth?: number;
  /** It is in the request that a provider got. */
  readonly shows: RegExp;
}

/** Names of `params.forward` that let all cases pass. */
export const LISTED_NAMES = (
  'web_search image_generation code_interpreter file_search mcp shell tool_of_tomorrow code_execution web_fetch ' +
  'mcp_servers googleSearch googleMaps urlContext codeExecution toolOfTomorrow modalities audio responseModalities ' +
  'web_search_options search_parameters enableSearch webSearchOptions prediction speed container context_management service_tier ' +
  'openrouter:web_search builtin_function google_search priority skills-2025-10-02 ' +
  'cached_content provider_options mcpServers mm_processor_kwargs'
).split(' ');

const FUNCTION = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const TOOL = { name: 'f', input_schema: { type: 'object' } };
const OF_RESPONSES = { type: 'function', name: 'f', parameters: { type: 'object' } };
const SEARCH = 10_000;
const refused = (at: string) => ({ refused: at });
const leftOut = (name: string) => ({ leftOut: name });

const chat = (what: string, asked: object, rest: Omit<PaidCase, 'wire' | 'what' | 'asked'>): PaidCase => ({
  wire: 'chat',
  what,
  asked,
  ...rest,
});
const messages = (what: string, asked: object, rest: Omit<PaidCase, 'wire' | 'what' | 'asked'>): PaidCase => ({
  wire: 'messages',
  what,
  asked,
  ...rest,
});
const responses = (what: string, asked: object, rest: Omit<PaidCase, 'wire' | 'what' | 'asked'>): PaidCase => ({
  wire: 'responses',
  what,
  asked,
  ...rest,
});
const gemini = (what: string, asked: object, rest: Omit<PaidCase, 'wire' | 'what' | 'asked'>): PaidCase => ({
  wire: 'gemini',
  what,
  asked: { generationConfig: { maxOutputTokens: 100 }, ...asked },
  ...rest,
});

export const CASES: readonly PaidCase[] = [
  // Tools.
  chat(
    'a search as a tool',
    { tools: [FUNCTION, { type: 'web_search' }] },
    { otherwise: refused('tools[1]'), price: 'web_search', worth: SEARCH, shows: /"web_search"/ },
  ),
  chat(
    'a search of a router',
    { tools: [{ type: 'openrouter:web_search' }] },
    { otherwise: refused('tools[0]'), price: 'web_search', worth: SEARCH, shows: /openrouter/ },
  ),
  chat(
    'a built-in function',
    { tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] },
    { otherwise: refused('tools[0]'), price: null, shows: /builtin/ },
  ),
  chat(
    'a search as a member of a function',
    { tools: [{ ...FUNCTION, google_search: {} }] },
    { otherwise: refused('tools[0]'), price: 'web_search', worth: SEARCH, shows: /google_search/ },
  ),
  chat(
    'a tool of an unknown type',
    { tools: [FUNCTION, { type: 'tool_of_tomorrow' }] },
    { otherwise: refused('tools[1]'), price: null, shows: /tomorrow/ },
  ),
  messages(
    'fifty searches',
    { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 50 }] },
    { otherwise: refused('tools[0]'), price: 'web_search', worth: 50 * SEARCH, shows: /web_search/ },
  ),
  messages(
    'a search among tools of the client',
    { tools: [TOOL, { type: 'web_search_20250305', name: 'web_search' }] },
    { otherwise: leftOut('web_search'), price: 'web_search', worth: 10 * SEARCH, shows: /web_search/ },
  ),
  messages(
    'a search that is chosen',
    {
      tools: [TOOL, { type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    },
    { otherwise: refused('tools[1]'), price: 'web_search', worth: 10 * SEARCH, shows: /web_search_2025/ },
  ),
  messages(
    'running code',
    { tools: [TOOL, { type: 'code_execution_20250825', name: 'code_execution' }] },
    { otherwise: leftOut('code_execution'), price: null, shows: /code_execution/ },
  ),
  messages(
    'fetching pages',
    { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] },
    { otherwise: refused('tools[0]'), price: null, shows: /web_fetch/ },
  ),
  messages(
    'a server of tools',
    {
      mcp_servers: [{ type: 'url', url: 'https://mcp.example/sse', name: 'x' }],
      tools: [TOOL, { type: 'mcp_toolset', mcp_server_name: 'x' }],
    },
    { otherwise: refused('mcp_servers'), price: null, shows: /mcp\.example/ },
  ),
  messages(
    'a tool of an unknown type',
    { tools: [{ type: 'tool_of_tomorrow_20270101', name: 'x' }] },
    { otherwise: refused('tools[0]'), price: null, shows: /tomorrow/ },
  ),
  responses(
    'a search',
    { tools: [{ type: 'web_search' }] },
    { otherwise: refused('tools[0]'), price: 'web_search', worth: 10 * SEARCH, shows: /web_search/ },
  ),
  responses(
    'a search among tools of the client',
    { tools: [OF_RESPONSES, { type: 'web_search', external_web_access: false }] },
    { otherwise: leftOut('web_search'), price: 'web_search', worth: 10 * SEARCH, shows: /web_search/ },
  ),
  responses(
    'a search that is among the allowed tools',
    {
      tools: [OF_RESPONSES, { type: 'web_search' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'web_search' }] },
    },
    { otherwise: refused('tools[1]'), price: 'web_search', worth: 10 * SEARCH, shows: /web_search/ },
  ),
  responses(
    'pictures',
    { tools: [{ type: 'image_generation', quality: 'high', size: '1536x1024' }] },
    { otherwise: refused('tools[0]'), price: null, shows: /image_generation/ },
  ),
  responses(
    'a container',
    { tools: [OF_RESPONSES, { type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }] },
    { otherwise: leftOut('code_interpreter'), price: null, shows: /64g/ },
  ),
  responses(
    'a shell in a container',
    { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
    { otherwise: refused('tools[0]'), price: null, shows: /container_auto/ },
  ),
  responses(
    'a server of tools',
    { tools: [OF_RESPONSES, { type: 'mcp', server_label: 'x', server_url: 'https://mcp.example/sse' }] },
    { otherwise: refused('tools[1]'), price: null, shows: /mcp\.example/ },
  ),
  responses(
    'a picture in a namespace',
    {
      tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [OF_RESPONSES, { type: 'image_generation' }] }],
    },
    { otherwise: refused('tools[0].tools[1]'), price: null, shows: /image_generation/ },
  ),
  responses(
    'a picture in an item',
    {
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'additional_tools', tools: [{ type: 'image_generation' }] },
      ],
    },
    { otherwise: refused('input[1]'), price: null, shows: /image_generation/ },
  ),
  responses(
    'a tool of an unknown type',
    { tools: [{ type: 'tool_of_tomorrow' }] },
    { otherwise: refused('tools[0]'), price: null, shows: /tomorrow/ },
  ),
  gemini(
    'a search',
    { tools: [{ googleSearch: {} }] },
    { otherwise: refused('tools[0].googleSearch'), price: 'web_search', worth: 10 * SEARCH, shows: /googleSearch/ },
  ),
  gemini(
    'a search in snake case beside functions',
    { tools: [{ functionDeclarations: [{ name: 'f' }], google_search: {} }] },
    { otherwise: refused('tools[0].googleSearch'), price: 'web_search', worth: 10 * SEARCH, shows: /googleSearch/ },
  ),
  gemini(
    'maps',
    { tools: [{ googleMaps: {} }] },
    { otherwise: refused('tools[0].googleMaps'), price: null, shows: /googleMaps/ },
  ),
  gemini(
    'running code',
    { tools: [{ codeExecution: {} }] },
    { otherwise: refused('tools[0].codeExecution'), price: null, shows: /codeExecution/ },
  ),
  gemini(
    'reading addresses',
    { tools: [{ urlContext: {} }] },
    { otherwise: refused('tools[0].urlContext'), price: null, shows: /urlContext/ },
  ),
  gemini(
    'a tool of an unknown type',
    { tools: [{ toolOfTomorrow: {} }] },
    { otherwise: refused('tools[0].toolOfTomorrow'), price: null, shows: /toolOfTomorrow/ },
  ),
  // Kinds of output. With the price, each of 100 tokens may be of that kind.
  chat(
    'sound',
    { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
    { otherwise: refused('modalities'), price: 'audio_output', worth: 100 * 64, shows: /"audio"/ },
  ),
  chat(
    'a picture',
    { modalities: ['image', 'text'] },
    { otherwise: refused('modalities'), price: 'image_output', worth: 100 * 30, shows: /"image"/ },
  ),
  chat(
    'a kind of tomorrow',
    { modalities: ['smell'] },
    { otherwise: refused('modalities'), price: null, shows: /smell/ },
  ),
  gemini(
    'sound',
    { generationConfig: { maxOutputTokens: 100, responseModalities: ['AUDIO'] } },
    { otherwise: refused('responseModalities'), price: 'audio_output', worth: 100 * 64, shows: /AUDIO/ },
  ),
  gemini(
    'a picture, by its number',
    { generationConfig: { maxOutputTokens: 100, response_modalities: ['TEXT', '2'] } },
    { otherwise: refused('responseModalities'), price: 'image_output', worth: 100 * 30, shows: /"2"/ },
  ),
  // Fields.
  chat(
    'options of a search',
    { web_search_options: { search_context_size: 'low' } },
    { otherwise: leftOut('web_search_options'), price: 'web_search', worth: SEARCH, shows: /search_context_size/ },
  ),
  chat(
    'a search of another vendor',
    { search_parameters: { mode: 'on' } },
    { otherwise: leftOut('search_parameters'), price: 'web_search', worth: SEARCH, shows: /search_parameters/ },
  ),
  chat(
    'a search, folded',
    { enableSearch: true },
    { otherwise: leftOut('enableSearch'), price: 'web_search', worth: SEARCH, shows: /enableSearch/ },
  ),
  chat(
    'pictures of more tokens',
    { mm_processor_kwargs: { max_pixels: 1e8 } },
    { otherwise: leftOut('mm_processor_kwargs'), price: null, shows: /max_pixels/ },
  ),
  chat(
    'a prediction',
    { prediction: { type: 'content', content: 'x'.repeat(100) } },
    { otherwise: leftOut('prediction'), price: null, shows: /prediction/ },
  ),
  chat(
    'a cached prompt',
    { cached_content: 'cachedContents/1' },
    { otherwise: leftOut('cached_content'), price: null, shows: /cachedContents/ },
  ),
  chat(
    'servers of tools in the options of a package',
    { provider_options: { anthropic: { mcpServers: [{ url: 'https://mcp.example' }] } } },
    { otherwise: leftOut('provider_options.anthropic.mcpServers'), price: null, shows: /mcp\.example/ },
  ),
  chat(
    'a service tier',
    { service_tier: 'priority' },
    { otherwise: leftOut('service_tier'), price: null, shows: /service_tier/ },
  ),
  messages('a faster answer', { speed: 'fast' }, { otherwise: leftOut('speed'), price: null, shows: /speed/ }),
  messages(
    'a container with skills',
    { container: { skills: [{ type: 'anthropic', skill_id: 'pptx', version: 'latest' }] } },
    { otherwise: leftOut('container'), price: null, shows: /pptx/ },
  ),
  messages(
    'a beta',
    {},
    {
      headers: { 'anthropic-beta': 'skills-2025-10-02' },
      otherwise: leftOut('skills-2025-10-02'),
      price: null,
      shows: /skills/,
    },
  ),
  responses(
    'a service tier',
    { service_tier: 'priority' },
    { otherwise: leftOut('service_tier'), price: null, shows: /"service_tier"/ },
  ),
  responses(
    'a shorter conversation',
    { context_management: [{ type: 'compaction', compact_threshold: 1_000 }] },
    { otherwise: leftOut('context_management'), price: null, shows: /compaction/ },
  ),
  responses(
    'a search, folded',
    { webSearchOptions: {} },
    { otherwise: leftOut('webSearchOptions'), price: null, shows: /webSearchOptions/ },
  ),
];
