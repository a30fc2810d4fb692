'use strict';

(() => {
  const $ = (id) => document.getElementById(id);
  const chosen = { log: [], copy: [] };
  if (location.protocol === 'file:') $('save').remove();

  // start makes the verifier from what is in the page, once.
  let started;
  const start = () => started ??= (async () => {
    const packed = Uint8Array.from(atob($('program').textContent.trim()), (c) => c.charCodeAt(0));
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const go = new Go();
    const { instance } = await WebAssembly.instantiate(await new Response(plain).arrayBuffer(), go.importObject);
    go.run(instance).catch((problem) => say('failed', 'The verifier ended', [String(problem)]));
  })();

  const choose = (which, files) => {
    chosen[which] = files;
    const shown = $(which).querySelector('output');
    shown.textContent = files.length === 0 ? '' : files.length === 1 ? files[0].path : `${files[0].path.split('/')[0]}: ${files.length} files`;
  };

  // below lists the files of what was dropped, with their paths.
  const below = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((good, bad) => entry.file(good, bad));
      return [{ path: entry.fullPath.replace(/^\//, ''), file }];
    }
    const reader = entry.createReader();
    const files = [];
    for (;;) { // a reader answers so many at a time
      const some = await new Promise((good, bad) => reader.readEntries(good, bad));
      if (some.length === 0) return files;
      for (const each of some) files.push(...await below(each));
    }
  };

  for (const which of ['log', 'copy']) {
    const area = $(which);
    for (const input of area.querySelectorAll('input')) {
      input.addEventListener('change', () => {
        for (const other of area.querySelectorAll('input')) if (other !== input) other.value = '';
        choose(which, [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
      });
    }
    area.addEventListener('dragover', (e) => { e.preventDefault(); area.classList.add('over'); });
    area.addEventListener('dragleave', () => area.classList.remove('over'));
    area.addEventListener('drop', async (e) => {
      e.preventDefault();
      area.classList.remove('over');
      const entries = [...e.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
      for (const input of area.querySelectorAll('input')) input.value = '';
      choose(which, (await Promise.all(entries.map(below))).flat());
    });
  }
  // A code that was scanned elsewhere opened this page.
  if (location.hash.startsWith('#s1/')) $('code').value = location.href;
  if (navigator.mediaDevices) $('scan').hidden = false;
  // reader returns a function that returns the text of the QR code in a video, or ''. Browsers without BarcodeDetector use the verifier.
  const reader = async () => {
    const known = 'BarcodeDetector' in window ? await BarcodeDetector.getSupportedFormats() : [];
    if (known.includes('qr_code')) {
      const detector = new BarcodeDetector({ formats: ['qr_code'] });
      return async (video) => (await detector.detect(video))[0]?.rawValue ?? '';
    }
    await start();
    const canvas = document.createElement('canvas');
    const drawn = canvas.getContext('2d', { willReadFrequently: true });
    return (video) => {
      canvas.width = video.videoWidth;
      canvas.height = video.videoHeight;
      drawn.drawImage(video, 0, 0);
      return bahiScan(drawn.getImageData(0, 0, canvas.width, canvas.height));
    };
  };
  $('scan').addEventListener('click', async () => {
    const camera = $('camera');
    try {
      camera.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } });
      camera.hidden = false;
      await camera.play();
      const read = await reader();
      for (let text = ''; text === ''; $('code').value = text) {
        await new Promise(requestAnimationFrame);
        text = await read(camera);
      }
    } catch (problem) {
      say('failed', 'The camera cannot be used', [String(problem), 'Paste the text of the code.']);
    } finally {
      for (const track of camera.srcObject?.getTracks() ?? []) track.stop();
      camera.srcObject = null;
      camera.hidden = true;
    }
  });
  // What is dropped beside the areas must not replace the page.
  for (const kind of ['dragover', 'drop']) addEventListener(kind, (e) => e.preventDefault());

  const say = (kind, title, sentences) => {
    const answer = $('answer');
    answer.className = kind;
    answer.replaceChildren();
    const add = (tag, text) => answer.appendChild(document.createElement(tag)).textContent = text;
    add('h2', title);
    for (const sentence of sentences) add('p', sentence);
  };

  const titles = { verified: 'Verified', tampered: 'Tampered with', undecided: 'It cannot be told' };

  $('form').addEventListener('submit', async (e) => {
    e.preventDefault();
    if (chosen.log.length === 0) {
      say('failed', 'Nothing was chosen', ['Choose an archive, a statement or a proof first.']);
      return;
    }
    $('verify').disabled = true;
    $('answer').replaceChildren();
    $('work').hidden = false;
    $('progress').removeAttribute('value');
    $('step').textContent = '';
    try {
      await start();
      const checkpoints = await Promise.all([...$('checkpoints').files].map(async (file) => ({ name: file.name, text: await file.text() })));
      const answer = JSON.parse(await bahiVerify({
        log: chosen.log, copy: chosen.copy, keys: $('keys').value, checkpoints, code: $('code').value.trim(),
        books: $('books').checked || $('tables').files.length > 0, tables: $('tables').files[0] || null,
        progress: (what, done, total) => {
          if (total > 0) $('progress').value = done / total;
          $('step').textContent = `${what}: ${done.toLocaleString('en')} events`;
        },
      }));
      const books = answer.books ? answer.books.sentences || [] : [];
      say(answer.verdict, titles[answer.verdict], [...answer.log ? [`The log ${answer.log}`] : [], ...answer.sentences, ...books]);
      if (answer.books) $('answer').appendChild(document.createElement('pre')).textContent = answer.books.text;
    } catch (problem) {
      say('failed', 'It could not be read', [String(problem)]);
    } finally {
      $('work').hidden = true;
      $('verify').disabled = false;
    }
  });
})();
