/** Files written by `setun models pull`: a complete download, and an interrupted one. */

/** A file of 2.5 MiB in chunks of 1 MiB; byte `i` is `7 i mod 251`. */
export const CHUNKS = [
  "e76e4c02227083fd12207b7bc85287bb9e02a618fed3bd8eab1bc2daeda2fb53",
  "50de14353bea7ce1f9eaba2805625a8d103c77d86f3093b913d603afa25991ed",
  "e58f232f4498c1473a028f7384ec79da65c6a377581a2de4fa65b7dbbf25bd95",
] as const;

export const WHOLE = "38cb113229885888704744f1eb4273b881b8df500adb5bd2032845a2666b6e66";

/** Without chunk 1. */
export const JOURNAL = `{"format":1,"bytes":2621440,"chunk_bytes":1048576,"identity":"\\"abc\\"","sha256":null}
{"chunk":[2,"${CHUNKS[2]}"]}
{"chunk":[0,"${CHUNKS[0]}"]}
`;

export const MANIFEST = `{
  "format": 1,
  "model": "127.0.0.1_8765/models/whole.gguf",
  "revision": "a35af6585a9e5b44",
  "source": "http://127.0.0.1:8765/models/whole.gguf",
  "pulled": "2026-11-21T21:41:28Z",
  "complete": true,
  "files": [
    {
      "name": "whole.gguf",
      "bytes": 2621440,
      "etag": "\\"abc\\"",
      "sha256": "${WHOLE}",
      "chunk_bytes": 1048576,
      "chunks": [
        "${CHUNKS[0]}",
        "${CHUNKS[1]}",
        "${CHUNKS[2]}"
      ]
    }
  ]
}
`;

/** Before any of its files was complete. */
export const BEGUN = `{
  "format": 1,
  "model": "127.0.0.1_8765/models/half.gguf",
  "revision": "ab9bd827a69f130d",
  "source": "http://127.0.0.1:8765/models/half.gguf",
  "pulled": "2026-11-21T21:41:28Z",
  "complete": false,
  "files": []
}
`;
