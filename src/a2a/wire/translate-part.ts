import { isObject, type JsonObject } from '#wire';
import { isSet } from './edit-members.ts';

/**
 * The member of `metadata` that marks 0.3 data of a kind that 0.3 has not: it stands in `data.value`. The official
 * SDKs write and read it.
 */
const WRAPPED = 'data_part_compat';

/**
 * 0.3 → 1.0: the content becomes a member of the part, and the members of `file` its neighbours. A value
 * that is not a part of 0.3 stays as it is.
 */
export function partTo10(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { kind, text, raw: _raw, url: _url, data, file, ...others } = part;
  if (isKind(kind, 'text', text)) return { text, ...others };
  if (isKind(kind, 'data', data)) return unwrapped(data, others);
  if (!isKind(kind, 'file', file) || !isObject(file)) return part;
  const { bytes, uri, mimeType, name } = file;
  if (!isSet(bytes) && !isSet(uri)) return part;
  return {
    ...(isSet(bytes) ? { raw: bytes } : { url: uri }),
    ...others,
    ...(isSet(name) ? { filename: name } : {}),
    ...(isSet(mimeType) ? { mediaType: mimeType } : {}),
  };
}

const isKind = (kind: unknown, wanted: string, content: unknown): boolean =>
  (kind === wanted || !isSet(kind)) && content !== undefined;

function unwrapped(data: unknown, others: JsonObject): JsonObject {
  const { metadata } = others;
  if (!isObject(metadata) || metadata[WRAPPED] !== true) return { data, ...others };
  const { [WRAPPED]: _flag, ...rest } = metadata;
  const { metadata: _metadata, ...members } = others;
  const value: unknown = isObject(data) && Object.hasOwn(data, 'value') ? data['value'] : data;
  return { data: value, ...members, ...(Object.keys(rest).length > 0 ? { metadata: rest } : {}) };
}

/**
 * 1.0 → 0.3. `filename` and `mediaType` of texts and data, which 0.3 has no names for, stay where they are. A value
 * that is not a part of 1.0 stays as it is.
 */
export function partTo03(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { kind: _kind, text, raw, url, data, filename, mediaType, ...others } = part;
  const described = { ...(isSet(filename) ? { filename } : {}), ...(isSet(mediaType) ? { mediaType } : {}) };
  if (isSet(text)) return { kind: 'text', text, ...described, ...others };
  if (isSet(raw) || isSet(url)) {
    const file = {
      ...(isSet(raw) ? { bytes: raw } : { uri: url }),
      ...(isSet(mediaType) && mediaType !== '' ? { mimeType: mediaType } : {}),
      ...(isSet(filename) && filename !== '' ? { name: filename } : {}),
    };
    return { ...others, kind: 'file', file };
  }
  if (data === undefined) return part;
  return isObject(data)
    ? { kind: 'data', data, ...described, ...others }
    : { kind: 'data', data: { value: data }, ...described, ...flagged(others) };
}

function flagged(others: JsonObject): JsonObject {
  const { metadata } = others;
  return { ...others, metadata: { ...(isObject(metadata) ? metadata : {}), [WRAPPED]: true } };
}
