import { isExactNumber, isObject, type JsonObject } from '#wire';
import { isSet } from './edit-members.ts';

/**
 * Data in 0.3 must be an object. This member of `metadata` marks another value, which is wrapped in `data.value`. The
 * official SDKs write and read the mark.
 */
const WRAPPED = 'data_part_compat';

/**
 * Translates a part from 0.3 to 1.0. The content becomes a member of the part, and so do the members of `file`. A value
 * that is not a part of 0.3 stays unchanged.
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
 * Translates a part from 1.0 to 0.3. 0.3 has no names for `filename` and `mediaType` of texts and data, so they keep
 * theirs. A value that is not a part of 1.0 stays unchanged.
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
  return isObject(data) && !isExactNumber(data)
    ? { kind: 'data', data, ...described, ...others }
    : { kind: 'data', data: { value: data }, ...described, ...flagged(others) };
}

function flagged(others: JsonObject): JsonObject {
  const { metadata } = others;
  return { ...others, metadata: { ...(isObject(metadata) ? metadata : {}), [WRAPPED]: true } };
}
