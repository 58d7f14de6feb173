/**
 * Whether a file is plain text in the request. The text or pages of another file may have more tokens than the
 * request has bytes.
 */
export const isPlainFile = (file: Readonly<Record<string, unknown>>): boolean => {
  const { file_data: data, file_url: url, file_id: id } = file;
  return typeof data === 'string' && /^data:text\//i.test(data) && !url && !id;
};
