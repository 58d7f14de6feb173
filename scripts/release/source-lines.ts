// Makes the stack traces of a bundle name the sources. Node can do this itself (`--enable-source-maps`), but it reads
// every map when it loads a file, which adds a third to the start. Here a map is read when the first error of its file
// is shown.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath } from 'node:url';

const PLACE = /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/;
const maps = new Map<string, SourceMap | null>();

Error.prepareStackTrace = (error, sites) =>
  [headOf(error), ...sites.map((site) => `    at ${String(site).replace(PLACE, placeOf)}`)].join('\n');

function headOf(error: Error): string {
  try {
    return String(error);
  } catch {
    return 'Error';
  }
}

/** The place in the source of a place in the bundle. A place without a source stays as it is. */
function placeOf(place: string, url: string, line: string, column: string): string {
  try {
    const found = mapOf(url)?.findOrigin(Number(line), Number(column));
    if (!found || !('fileName' in found)) return place;
    return `${new URL(found.fileName, url).href}:${found.lineNumber}:${found.columnNumber}`;
  } catch {
    return place;
  }
}

function mapOf(url: string): SourceMap | null {
  let map = maps.get(url);
  if (map === undefined) {
    const file = `${fileURLToPath(url)}.map`;
    map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload) : null;
    maps.set(url, map);
  }
  return map;
}
