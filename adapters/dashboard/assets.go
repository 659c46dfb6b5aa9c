package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets pages
var files embed.FS

// assetDir is where assets are served.
const assetDir = "assets/"

// assets are the files that pages load, by their served names. These contain a digest of the
// content, so that browsers may keep the files for ever.
var assets, hashed = readAssets()

func readAssets() (byName map[string][]byte, names map[string]string) {
	byName, names = map[string][]byte{}, map[string]string{}
	list, _ := fs.Glob(files, assetDir+"*") // the pattern is well-formed
	for _, file := range list {
		data, err := files.ReadFile(file)
		if err != nil {
			continue // it is embedded
		}
		sum := sha256.Sum256(data)
		ext := path.Ext(file)
		name := strings.TrimSuffix(path.Base(file), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		byName[name], names[path.Base(file)] = data, assetDir+name
	}
	return byName, names
}

// asset returns a file's path, below the prefix.
func asset(file string) string { return hashed[file] }

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/"+assetDir)
	data, there := assets[name]
	if !there {
		http.NotFound(w, r)
		return
	}

	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Add("Vary", varies)
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	if path.Ext(name) == ".js" {
		h.Set("Content-Type", "text/javascript; charset=utf-8")
	}
	send(w, r, http.StatusOK, data)
}
