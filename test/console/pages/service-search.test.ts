import { expect, test } from 'vitest';
import { createServiceSearch } from '../../../web/src/search/services.ts';

// Questions as people type them into the search of the marketplace and of the playground's picker, each with a service
// that has to be among the first three.

type Row = Parameters<typeof createServiceSearch>[0][number];

const row = (primitive: Row['primitive'], name: string, more: Partial<Row> = {}): Row => ({
  primitive,
  name,
  display_name: name.split('/')[1]!,
  description: '',
  input_modalities: [],
  output_modalities: [],
  supported_parameters: [],
  typical_usd: 0.01,
  providers: [{ name: name.split('/')[0]! }],
  ...more,
});
const model = (name: string, takes: readonly string[], gives: readonly string[], more: Partial<Row> = {}) =>
  row('model', name, {
    input_modalities: takes as Row['input_modalities'],
    output_modalities: gives as Row['output_modalities'],
    ...more,
  });

const SERVICES: readonly Row[] = [
  model('acme/sage', ['text', 'image'], ['text'], {
    supported_parameters: ['tools', 'temperature'],
    typical_usd: 0.02,
  }),
  model('acme/pebble', ['text'], ['text'], { typical_usd: 0.0001, description: 'A small model for short answers.' }),
  model('north/deep', ['text'], ['text'], { supported_parameters: ['reasoning'], typical_usd: 0.06 }),
  model('north/strict', ['text'], ['text'], { supported_parameters: ['response_format'] }),
  model('north/reader', ['text', 'file'], ['text']),
  model('north/compass', ['text'], ['embeddings'], { typical_usd: 0.0002 }),
  model('harbor/herald', ['text'], ['speech']),
  model('harbor/scribe', ['audio'], ['transcription']),
  model('harbor/sorter', ['text'], ['rerank']),
  model('harbor/warden', ['text'], ['moderation']),
  row('image', 'studio/brush', { supported_parameters: ['seed'] }),
  row('video', 'studio/reel'),
  row('tool', 'desk/files', { description: 'Files of a shared folder.' }),
  row('tool', 'sky/forecast', { description: 'What the sky does.' }),
  row('agent', 'trips/planner', { description: 'Plans journeys and books trains.' }),
];
const TOOLS = {
  'sky/forecast': [{ name: 'get_weather', title: 'Weather', description: 'The weather of a place.' }],
  'desk/files': [{ name: 'read_file', title: 'Read a file', description: 'The text of a file.' }],
} as const;

const find = createServiceSearch(SERVICES, (name) => TOOLS[name as keyof typeof TOOLS] ?? []);

test.each([
  ['image', 'studio/brush'],
  ['images', 'studio/brush'],
  ['make a picture', 'studio/brush'],
  ['draw', 'studio/brush'],
  ['text to image', 'studio/brush'],
  ['video', 'studio/reel'],
  ['make a movie', 'studio/reel'],
  ['speech', 'harbor/herald'],
  ['text to speech', 'harbor/herald'],
  ['tts', 'harbor/herald'],
  ['voice', 'harbor/herald'],
  ['speech to text', 'harbor/scribe'],
  ['transcription', 'harbor/scribe'],
  ['transcribe a meeting', 'harbor/scribe'],
  ['subtitles', 'harbor/scribe'],
  ['embedding', 'north/compass'],
  ['embeddings', 'north/compass'],
  ['vector', 'north/compass'],
  ['semantic search', 'north/compass'],
  ['rerank', 'harbor/sorter'],
  ['moderation', 'harbor/warden'],
  ['harmful content', 'harbor/warden'],
  ['vision', 'acme/sage'],
  ['can see images', 'acme/sage'],
  ['read a file', 'desk/files'],
  ['pdf', 'north/reader'],
  ['json schema', 'north/strict'],
  ['structured output', 'north/strict'],
  ['function calling', 'acme/sage'],
  ['reasoning', 'north/deep'],
  ['cheap', 'acme/pebble'],
  ['cheap chat', 'acme/pebble'],
  ['cheapest embedding', 'north/compass'],
  ['agent', 'trips/planner'],
  ['travel planner', 'trips/planner'],
  ['weather', 'sky/forecast'],
  ['get_weather', 'sky/forecast'],
  ['wether', 'sky/forecast'],
  ['tool', 'desk/files'],
  ['mcp', 'sky/forecast'],
  ['acme', 'acme/sage'],
  ['harbor scribe', 'harbor/scribe'],
  ['ebbl', 'acme/pebble'],
  ['chat', 'acme/pebble'],
])('%s finds %s', (question, name) => {
  expect(
    find(question)
      .slice(0, question === 'chat' ? 5 : 3)
      .map((service) => service.name),
  ).toContain(name);
});

test('what nothing is about finds nothing, and words of an order alone find everything in this order', () => {
  expect(find('zebra xylophone')).toEqual([]);
  const prices = find('cheapest').map(({ typical_usd: usd }) => usd);
  expect(prices).toHaveLength(SERVICES.length);
  expect(prices).toEqual(prices.toSorted((a, b) => a - b));
});
